package peers

import (
	"encoding/binary"
	"fmt"

	"github.com/rekindledb/rekindle/bench/micro"
)

// loadBatch is the number of rows of one loading transaction.
const loadBatch = 10_000

// putKey writes the key so that byte order is the order of keys.
func putKey(dst *[8]byte, key uint64) []byte {
	binary.BigEndian.PutUint64(dst[:], key)
	return dst[:]
}

func errAbsent(key uint64) error { return fmt.Errorf("key %d is absent", key) }

// inBatches calls load with loadBatch keys at a time.
func inBatches(keys []uint64, load func(keys []uint64) error) error {
	for len(keys) > 0 {
		n := min(loadBatch, len(keys))
		if err := load(keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// Systems are the peers.
func Systems() []micro.System {
	return []micro.System{
		{Name: "bbolt", Open: openBolt},
		{Name: "badger", Open: openBadger},
		{Name: "pebble", Open: openPebble},
		{Name: "buntdb", Open: openBunt},
		{Name: "sqlite", Open: openSQLite},
	}
}
