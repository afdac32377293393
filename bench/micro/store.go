package micro

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// ValueSize is the length of a value in bytes; keys have 8.
const ValueSize = 100

// System is a kind of store.
type System struct {
	Name string
	// Open opens the store in a directory that is there, and makes one in an
	// empty directory. In a durable store a commit returns when it is on disk.
	Open func(dir string, durable bool) (Store, error)
}

// Store is an open store.
type Store interface {
	// Load inserts the keys in the order given, each with AppendValue(key, 0),
	// in any transactions and without waiting for the disk, and makes them
	// durable once.
	Load(keys []uint64) error
	// Session returns what one goroutine works with.
	Session() (Session, error)
	Close() error
}

// Session works for one goroutine. Every call is a transaction of its own.
// Reads fail if a row is absent, and reads and scans if a value has the wrong
// length; an update may insert an absent row.
type Session interface {
	Read(key uint64) error
	// ReadMany reads all keys in one transaction.
	ReadMany(keys []uint64) error
	// Update may keep value until it returns.
	Update(key uint64, value []byte) error
	// Scan visits n rows, or those that there are, from key on in ascending
	// order, looks at every value and returns their number.
	Scan(key uint64, n int) (int, error)
	Close() error
}

// Measured is a Store with figures of its own, each reported as a metric with
// its key as the unit.
type Measured interface {
	Memory() map[string]float64   // beside the Go heap
	Recovery() map[string]float64 // parts of the Open that made the store
}

// AppendValue appends the value of a key: ValueSize bytes that differ by key
// and version.
func AppendValue(dst []byte, key, version uint64) []byte {
	r := rand.NewPCG(key, version)
	for range ValueSize / 8 {
		dst = binary.LittleEndian.AppendUint64(dst, r.Uint64())
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(r.Uint64()))
}

// CheckValue is the least that keeps a read from being skipped.
func CheckValue(key uint64, value []byte) error {
	if len(value) != ValueSize {
		return fmt.Errorf("value of key %d has %d bytes, want %d", key, len(value), ValueSize)
	}
	return nil
}

// Keys returns 0 to n-1 in random order.
func Keys(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	rand.New(rand.NewPCG(1, uint64(n))).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}
