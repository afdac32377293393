package rekindle_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// settle waits until the collector has worked off what was left behind.
func settle(t *testing.T, db *rekindle.DB) rekindle.Stats {
	t.Helper()
	require.Eventually(t, func() bool { return db.Stats().GarbageQueued == 0 }, 10*time.Second, time.Millisecond)
	return db.Stats()
}

// TestSpaceComesBack: rounds of inserting and deleting everything need no more
// memory, index entries, rows or log files in the end than after a few rounds.
func TestSpaceComesBack(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: strategy})
			var early rekindle.Stats
			for round := range 40 {
				churn(t, db, items, round)
				stats := settle(t, db)
				require.Zero(t, stats.GarbageFailed)
				require.NoError(t, db.Checkpoint(t.Context()))
				if round == 10 {
					early = stats
				}
			}
			late := settle(t, db)
			require.LessOrEqual(t, late.ArenaInUse, early.ArenaInUse+early.ArenaInUse/10, "arena")
			require.LessOrEqual(t, late.IndexEntries, early.IndexEntries, "index entries")
			require.LessOrEqual(t, late.LogSegments, early.LogSegments+3, "log segments")
			require.NoError(t, db.Close(t.Context()))
			db, items = openItems(t, fs, rekindle.Options{})
			require.Empty(t, allItems(t, db, items))
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

func churn(t *testing.T, db *rekindle.DB, items *rekindle.Table[item], round int) {
	t.Helper()
	const rows = 200
	update(t, db, func(tx *rekindle.Tx) {
		for i := range int64(rows) {
			require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(round, i)}))
		}
	})
	for pass := range 3 {
		update(t, db, func(tx *rekindle.Tx) {
			for i := range int64(rows) {
				require.NoError(t, items.Update(tx, &item{ID: i, Name: fmt.Sprint(round, i, pass), Group: int32(pass)}))
			}
		})
	}
	update(t, db, func(tx *rekindle.Tx) {
		for i := range int64(rows) {
			require.NoError(t, items.Delete(tx, &item{ID: i}))
		}
	})
}

// TestOldReader: as long as a snapshot is open its rows stay; afterwards they go.
func TestOldReader(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "first"})) })
	reader, err := db.Begin(t.Context(), false)
	require.NoError(t, err)
	for i := range 100 {
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Update(tx, &item{ID: 1, Name: fmt.Sprint(i), Group: int32(i)}))
		})
	}
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Delete(tx, &item{ID: 1})) })
	require.NoError(t, db.Checkpoint(t.Context()))
	row := item{Name: "first"}
	require.NoError(t, items.GetBy(reader, "name", &row))
	require.EqualValues(t, 1, row.ID)
	require.NotZero(t, db.Stats().GarbageQueued)
	require.NoError(t, reader.Rollback())
	require.LessOrEqual(t, settle(t, db).IndexEntries, int64(2), "the entries of the catalogue")
	require.NoError(t, db.Close(t.Context()))
}

// TestDeleteAtTheMemoryLimit: a database that takes no more rows can still be
// emptied, in transactions of a moderate size, and takes rows again then.
func TestDeleteAtTheMemoryLimit(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{CheckpointBytes: -1, MemoryLimit: 12 << 20, Durability: rekindle.None, IndexStrategy: strategy}
			db, items := openItems(t, vfs.NewMem(), o)
			note := string(make([]byte, 500))
			put := func(id int64) error {
				return db.Update(t.Context(), func(tx *rekindle.Tx) error {
					return items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id), Note: &note})
				})
			}
			rows := int64(0)
			var err error
			for ; err == nil; rows++ {
				err = put(rows)
			}
			require.ErrorIs(t, err, rekindle.ErrMemoryLimit)
			settle(t, db)
			for first := int64(0); first < rows-1; first += 1000 {
				require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error {
					for id := first; id < min(first+1000, rows-1); id++ {
						if err := items.Delete(tx, &item{ID: id}); err != nil {
							return err
						}
					}
					return nil
				}))
				settle(t, db)
			}
			require.Empty(t, allItems(t, db, items))
			for id := range rows / 2 {
				require.NoError(t, put(id))
			}
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestLargeTransactionsLeaveNothing: what a large transaction needs on the Go
// heap is given back, by its session and by the collector.
func TestLargeTransactionsLeaveNothing(t *testing.T) {
	const rows = 60_000
	o := rekindle.Options{CheckpointBytes: -1, Durability: rekindle.None, IndexStrategy: "rebuild"}
	db, err := rekindle.Open(t.Context(), t.TempDir(), &o) // the log of a Mem would be on the heap
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	before := liveHeap()
	each := func(do func(tx *rekindle.Tx, row *item) error) {
		update(t, db, func(tx *rekindle.Tx) {
			for id := range int64(rows) {
				require.NoError(t, do(tx, &item{ID: id, Name: fmt.Sprint(id)}))
			}
		})
	}
	each(items.Insert)
	each(func(tx *rekindle.Tx, row *item) error { row.Group++; return items.Update(tx, row) })
	each(items.Delete)
	settle(t, db)
	require.Less(t, liveHeap()-before, int64(5<<20))
	require.NoError(t, db.Close(t.Context()))
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestManyLives: a database that is opened for a few rows again and again takes
// the space of the rows, not that of what was prepared for more.
func TestManyLives(t *testing.T) {
	fs := vfs.NewMem()
	for life := range 30 {
		db, items := openItems(t, fs, rekindle.Options{})
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Insert(tx, &item{ID: int64(life), Name: fmt.Sprint(life)}))
		})
		require.NoError(t, db.Close(t.Context()))
	}
	var bytes int
	for name, content := range fs.Dump() {
		if strings.HasSuffix(name, ".log") {
			bytes += len(content)
		}
	}
	require.Less(t, bytes, 30*4096)
	db, items := openItems(t, fs, rekindle.Options{})
	require.Len(t, allItems(t, db, items), 30)
	require.NoError(t, db.Close(t.Context()))
}
