package btree

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// TestNoGarbage expects operations to leave the Go heap alone, splits and merges
// too once their working memory is there.
func TestNoGarbage(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checks allocate")
	}
	for _, kind := range kinds[:2] {
		r := newRig(t, kind.store)
		var key [8]byte
		var rows [4]rowid.ID
		var batch index.Batch
		var cursor index.Cursor
		n := uint64(0)
		cycle := func() {
			n++
			binary.BigEndian.PutUint64(key[:], n*0x9e3779b97f4a7c15)
			r.h.Pin()
			defer r.h.Unpin()
			if err := r.Insert(r.h, key[:], rowid.ID(n), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Lookup(r.h, key[:], rows[:0]); err != nil {
				t.Fatal(err)
			}
			cursor.Reset()
			if _, err := r.Scan(r.h, index.Range{Lo: key[:], Reverse: n%2 == 0}, &cursor, &batch); err != nil {
				t.Fatal(err)
			}
			if n%3 > 0 {
				if _, err := r.Remove(r.h, key[:], rowid.ID(n), always); err != nil {
					t.Fatal(err)
				}
			}
		}
		require.Less(t, testing.AllocsPerRun(20000, cycle), 1.0, kind.name)
	}
}
