package gc

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// TestHeld: each piece once for each snapshot, and the lists of those that have
// gone come back as they were, the oldest first.
func TestHeld(t *testing.T) {
	var h held
	suspect := func(row, key int) txn.Garbage {
		return txn.Garbage{CTS: 5, Row: rowid.Make(1, uint64(row)), Kind: txn.GarbageSuspect, Index: 1, Key: fmt.Append(nil, key)}
	}
	versions := func(row int) txn.Garbage {
		return txn.Garbage{CTS: 5, Row: rowid.Make(1, uint64(row)), Kind: txn.GarbageVersions}
	}
	for range 3 {
		for row := range 5000 {
			for _, snapshot := range []uint64{30, 20} {
				h.add(snapshot, versions(row))
				h.add(snapshot, suspect(row, 1))
				h.add(snapshot, suspect(row, 2))
			}
		}
	}
	require.Equal(t, 2*3*5000, h.count)
	require.Equal(t, 2*5000, h.countKind(txn.GarbageVersions))
	pieces := 0
	h.all(func(txn.Garbage) { pieces++ })
	require.Equal(t, h.count, pieces)

	h.lists[20].pieces.Add(suspect(0, 3))
	h.count++
	var due txn.GarbageList
	h.release(&txn.Snapshots{}, &due)
	require.Zero(t, h.count)
	require.Empty(t, h.lists)
	require.Equal(t, 2*3*5000+1, due.Len())
	for i := range due.Len() {
		g, _ := due.First()
		switch {
		case i == 3*5000:
			require.Equal(t, "3", string(g.Key), "the end of what was held for the older one")
		case i%3 == 0 && i < 3*5000:
			require.Zero(t, g.CTS, "due at once")
			require.Equal(t, rowid.Make(1, uint64(i/3)), g.Row)
		}
		due.Drop()
	}
}

// TestTrimmed remembers rows of one step, of two in the same place the last one.
func TestTrimmed(t *testing.T) {
	var l trimmed
	a, b, c := rowid.Make(1, 7), rowid.Make(1, 7+uint64(len(l))), rowid.Make(2, 8)
	for _, row := range []rowid.ID{a, c} {
		require.False(t, l.add(row))
		require.True(t, l.add(row))
	}
	require.False(t, l.add(b))
	require.False(t, l.add(a))
	require.True(t, l.add(c))
}
