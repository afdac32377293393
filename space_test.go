//go:build !race

package rekindle_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var (
	spaceRounds = flag.Int("space.rounds", 14, "rounds of TestRoundsStayFlat")
	spaceRows   = flag.Int64("space.rows", 2000, "rows that each of them inserts and deletes")
	deletedRows = flag.Int64("space.deleted", 60_000, "rows of TestDeleteEverything")
)

// openSpace opens a database on disk, because the log of a vfs.Mem would be on
// the Go heap.
func openSpace(t *testing.T, dir, strategy string) (*rekindle.DB, *rekindle.Table[item]) {
	t.Helper()
	o := rekindle.Options{SegmentBytes: 1 << 20, CheckpointBytes: -1, Durability: rekindle.None, IndexStrategy: strategy}
	db, err := rekindle.Open(t.Context(), dir, &o)
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	return db, items
}

// forEach runs do for the rows, 1000 in a transaction.
func forEach(t *testing.T, db *rekindle.DB, rows int64, do func(tx *rekindle.Tx, row *item) error) {
	t.Helper()
	note := strings.Repeat("x", 100)
	for first := int64(0); first < rows; first += 1000 {
		update(t, db, func(tx *rekindle.Tx) {
			for id := first; id < min(first+1000, rows); id++ {
				require.NoError(t, do(tx, &item{ID: id, Name: fmt.Sprint(id), Note: &note}))
			}
		})
	}
}

// TestRoundsStayFlat: rounds of inserting and deleting rows, each with a
// checkpoint, now and then with a reopen, take no more of anything in the end
// than after the first ten. For all of it: -space.rounds 100 -space.rows 10000.
func TestRoundsStayFlat(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			dir := t.TempDir()
			db, items := openSpace(t, dir, strategy)
			var most rekindle.Stats // of the first rounds
			for round := range *spaceRounds {
				forEach(t, db, *spaceRows, items.Insert)
				forEach(t, db, *spaceRows, items.Delete)
				require.NoError(t, db.Checkpoint(t.Context()))
				s := settle(t, db)
				s.GoHeap = liveHeap()
				if round < 10 {
					most = maxStats(most, s)
				} else {
					requireFlat(t, round, most, s)
				}
				if round%7 == 6 {
					require.NoError(t, db.Close(t.Context()))
					db, items = openSpace(t, dir, strategy)
				}
			}
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

func maxStats(a, b rekindle.Stats) rekindle.Stats {
	a.LogBytes = max(a.LogBytes, b.LogBytes)
	a.CheckpointBytes = max(a.CheckpointBytes, b.CheckpointBytes)
	a.ArenaInUse = max(a.ArenaInUse, b.ArenaInUse)
	a.ArenaReserved = max(a.ArenaReserved, b.ArenaReserved)
	a.GoHeap = max(a.GoHeap, b.GoHeap)
	a.RowIDHighWater = max(a.RowIDHighWater, b.RowIDHighWater)
	a.IndexEntries = max(a.IndexEntries, b.IndexEntries)
	return a
}

func requireFlat(t *testing.T, round int, early, late rekindle.Stats) {
	t.Helper()
	const segment, heap, page, manifest, merge = 1 << 20, 2 << 20, 512, 1 << 20, 1 << 20
	flat := func(what string, early, late, more int64) {
		t.Helper()
		require.LessOrEqual(t, late, early+more, "round %d: %s", round, what)
	}
	flat("log", early.LogBytes, late.LogBytes, 2*segment)
	flat("checkpoints", early.CheckpointBytes, late.CheckpointBytes, early.CheckpointBytes/4+manifest)
	flat("arena in use", early.ArenaInUse, late.ArenaInUse, merge)
	flat("arena", early.ArenaReserved, late.ArenaReserved, 4<<20)
	flat("Go heap", early.GoHeap, late.GoHeap, heap)
	flat("row identities", early.RowIDHighWater, late.RowIDHighWater, page)
	flat("index entries", early.IndexEntries, late.IndexEntries, 0)
	require.Zero(t, late.GarbageFailed)
}

// TestDeleteEverything: memory and disk come back when all rows are deleted. A
// table keeps 8 bytes in the arena and 8 on the Go heap for each row identity.
func TestDeleteEverything(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			dir := t.TempDir()
			db, items := openSpace(t, dir, strategy)
			before := liveHeap()
			forEach(t, db, *deletedRows, items.Insert)
			require.NoError(t, db.Checkpoint(t.Context()))
			full := settle(t, db)
			forEach(t, db, *deletedRows, items.Delete)
			for range 3 { // the last two are kept, and the delete records while either needs them
				require.NoError(t, insertItem(t, db, items, 1, ""))
				update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Delete(tx, &item{ID: 1})) })
				settle(t, db)
				require.NoError(t, db.Checkpoint(t.Context()))
			}
			const chunks = 5 << 22 // a chunk stays as long as one block in it is in use
			identities := *deletedRows * 8
			s := settle(t, db)
			enough := func() bool {
				s = db.Stats()
				return s.ArenaReserved <= chunks+identities && s.LogBytes <= 6<<20 && s.CheckpointBytes < 1<<20
			}
			if !assert.Eventually(t, enough, 5*time.Second, 10*time.Millisecond) {
				t.Fatalf("full %+v\nin the end %+v", full, s)
			}
			t.Logf("arena %d of %d, log %d of %d, checkpoints %d of %d", s.ArenaReserved, full.ArenaReserved, s.LogBytes, full.LogBytes, s.CheckpointBytes, full.CheckpointBytes)
			require.LessOrEqual(t, s.IndexEntries, int64(2), "entries of the catalogue")
			require.Less(t, liveHeap()-before, 6<<20+2*identities)
			require.EqualValues(t, 1, s.RowIDs)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}
