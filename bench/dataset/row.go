package dataset

import (
	"encoding/binary"
	"fmt"
)

// MaxIndexes is the number of columns that can have an index.
const MaxIndexes = 4

// valueSize makes the row 100 bytes beside its key.
const valueSize = 76

// row is a row with any number of indexes.
type row struct {
	Key     uint64
	A, B, C uint64
	Value   []byte
}

// The stored types differ in their tags only, so that they convert from and to
// row.
type (
	row1 struct {
		Key     uint64 `rekindle:",pk"`
		A, B, C uint64
		Value   []byte
	}
	row2 struct {
		Key   uint64 `rekindle:",pk"`
		A     uint64 `rekindle:",index"`
		B, C  uint64
		Value []byte
	}
	row3 struct {
		Key   uint64 `rekindle:",pk"`
		A     uint64 `rekindle:",index"`
		B     uint64 `rekindle:",index"`
		C     uint64
		Value []byte
	}
	row4 struct {
		Key   uint64 `rekindle:",pk"`
		A     uint64 `rekindle:",index"`
		B     uint64 `rekindle:",index"`
		C     uint64 `rekindle:",index"`
		Value []byte
	}
)

type stored interface{ row1 | row2 | row3 | row4 }

// Key returns the primary key of a row. No two numbers share one.
func Key(number uint64) uint64 { return mix(number + 1) } // mix(0) is 0, no random number

// mix is the finalizer of splitmix64, a bijection.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fill makes the version of a row with a key. Only the value depends on the
// version.
func (r *row) fill(key, version uint64) {
	r.Key = key
	r.A, r.B, r.C = mix(key+1), mix(key+2), mix(key+3)
	state := mix(key ^ version)
	value := binary.LittleEndian.AppendUint64(r.Value[:0], seal(key))
	for len(value) < valueSize {
		state += 0x9e3779b97f4a7c15
		value = binary.LittleEndian.AppendUint64(value, mix(state))
	}
	r.Value = value[:valueSize]
}

func seal(key uint64) uint64 { return mix(^key) }

// check sees whether a value belongs to the row it was found under.
func (r *row) check(key uint64) error {
	if r.Key != key || len(r.Value) != valueSize || binary.LittleEndian.Uint64(r.Value) != seal(key) {
		return fmt.Errorf("the row found under key %#x is not the one stored", key)
	}
	return nil
}
