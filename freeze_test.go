package rekindle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// fillItems inserts rows of about a KiB each.
func fillItems(t *testing.T, db *rekindle.DB, items *rekindle.Table[item], rows int64) {
	t.Helper()
	note := strings.Repeat("n", 1000)
	const batch = 100
	for first := int64(0); first < rows; first += batch {
		update(t, db, func(tx *rekindle.Tx) {
			for id := first; id < min(rows, first+batch); id++ {
				require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id), Group: int32(id % 7), Note: &note}))
			}
		})
	}
}

// awaitFrozen waits until the rows of a database that nobody uses have left
// memory.
func awaitFrozen(t *testing.T, db *rekindle.DB, rows uint64) {
	t.Helper()
	require.Eventually(t, func() bool {
		db.FreezeNow()
		return db.Stats().RowsFrozen >= rows
	}, 10*time.Second, time.Millisecond)
}

// get reads one row.
func get(t *testing.T, db *rekindle.DB, items *rekindle.Table[item], id int64) {
	t.Helper()
	require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
		row := item{ID: id}
		err := items.Get(tx, &row)
		require.Equal(t, fmt.Sprint(id), row.Name)
		return err
	}))
}

// TestBudget: rows of many times the budget are loaded, read, changed and found
// again after a restart, and memory stays at the budget.
func TestBudget(t *testing.T) {
	const rows, budget = 8000, 2 << 20
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			o := rekindle.Options{MemoryBudget: budget, IndexStrategy: strategy, Durability: rekindle.None, SegmentBytes: 256 << 10}
			db, items := openItems(t, fs, o)
			fillItems(t, db, items, rows)
			rng := rand.New(rand.NewPCG(1, 2))
			for round := range 2 {
				for range 2000 {
					get(t, db, items, rng.Int64N(rows))
				}
				require.Eventually(t, func() bool { return db.Stats().ArenaInUse < budget*9/8 }, 10*time.Second, time.Millisecond)
				count, err := db.CrossCheck(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, rows+1, count, "and that of the catalogue")
				update(t, db, func(tx *rekindle.Tx) {
					for range 200 {
						id := rng.Int64N(rows)
						require.NoError(t, items.Update(tx, &item{ID: id, Name: fmt.Sprint(id), Group: int32(round)}))
					}
				})
				require.NoError(t, db.Close(t.Context()))
				db, items = openItems(t, fs, o)
			}
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestScansDoNotFlood: scans read frozen rows where they are.
func TestScansDoNotFlood(t *testing.T) {
	const rows = 500
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{MemoryBudget: 200 << 10})
	fillItems(t, db, items, rows)
	awaitFrozen(t, db, rows*3/4)
	before := db.Stats()
	for range 3 {
		require.Len(t, allItems(t, db, items), rows)
	}
	_, err := db.CrossCheck(t.Context())
	require.NoError(t, err)
	after := db.Stats()
	require.Equal(t, before.RowsOnline, after.RowsOnline, "scans flood memory")
	require.Greater(t, after.ColdReads, before.ColdReads)

	require.NoError(t, db.Close(t.Context()))
}

// TestSecondTouch: a row that is in the log stays there when it is read once, and
// comes into memory when it is read again, by key or with others. If there is much
// room the first time is enough.
func TestSecondTouch(t *testing.T) {
	const rows = 1500
	fs := vfs.NewMem()
	o := rekindle.Options{MemoryBudget: 2 << 20}
	db, items := openItems(t, fs, o)
	fillItems(t, db, items, rows)
	db.FreezeNow() // the first rows, a sixteenth of the budget
	require.Greater(t, db.Stats().RowsFrozen, uint64(50))
	getMany := func() {
		require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
			_, err := items.GetMany(tx, []item{{ID: 10}, {ID: 11}, {ID: 12}})
			return err
		}))
	}
	online := db.Stats().RowsOnline
	check := func(step string, wantOnline, wantCold uint64, do func()) {
		before := db.Stats()
		do()
		after := db.Stats()
		require.Equal(t, wantOnline, after.RowsOnline-before.RowsOnline, step)
		require.Equal(t, wantCold, after.ColdReads-before.ColdReads, step)
	}
	check("first", 0, 1, func() { get(t, db, items, 5) })
	check("second", 1, 1, func() { get(t, db, items, 5) })
	check("third", 0, 0, func() { get(t, db, items, 5) })
	check("many, first", 0, 3, getMany)
	check("many, second", 3, 3, getMany)
	check("many, third", 0, 0, getMany)
	check("writer", 1, 2, func() {
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Update(tx, &item{ID: 20, Name: "20"})) })
	})
	require.EqualValues(t, 5, db.Stats().RowsOnline-online)
	require.NoError(t, db.Close(t.Context()))

	o.MemoryBudget = 64 << 20
	db, items = openItems(t, fs, o)
	check("room", 1, 1, func() { get(t, db, items, 5) })
	check("scan", 0, rows-1, func() { allItems(t, db, items) })
	require.NoError(t, db.Close(t.Context()))
}

// TestUsedRowsStay: the clock's hand passes rows that are read again and again.
func TestUsedRowsStay(t *testing.T) {
	const rows = 1500
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{MemoryBudget: 2 << 20})
	fillItems(t, db, items, rows)
	read := func() {
		for id := int64(700); id < 720; id++ {
			get(t, db, items, id)
		}
	}
	for db.Stats().RowsFrozen < 1000 {
		read()
		db.FreezeNow() // some hundred rows
	}
	read()
	require.Zero(t, db.Stats().ColdReads)
	require.NoError(t, db.Close(t.Context()))
}

// TestModelWithBudget is TestModel with rows that leave memory all the time, in
// every second run while their records move in the log.
func TestModelWithBudget(t *testing.T) {
	forModels(t, rekindle.Options{MemoryBudget: 1}, func(m *model) {
		m.notes = 8000
		m.run(150)
	})
}

// TestColdReadFails: a row that cannot be read from the log is an error of the call
// that wants it, says where it is, and is there again when the disk is.
func TestColdReadFails(t *testing.T) {
	const rows = 300
	var broken atomic.Bool
	failing := errorfs.Func(func(op vfs.Op) error {
		if broken.Load() && op.Kind == vfs.OpReadAt && strings.HasSuffix(op.Path, ".log") {
			return syscall.EIO
		}
		return nil
	})
	db, items := openItems(t, errorfs.Wrap(vfs.NewMem(), failing), rekindle.Options{MemoryBudget: 200 << 10})
	fillItems(t, db, items, rows)
	awaitFrozen(t, db, rows+1)
	calls := []struct { // each wants rows that the others leave alone
		name string
		call func(tx *rekindle.Tx) error
	}{
		{"get", func(tx *rekindle.Tx) error { return items.Get(tx, &item{ID: 1}) }},
		{"many", func(tx *rekindle.Tx) error { _, err := items.GetMany(tx, []item{{ID: 2}, {ID: 3}}); return err }},
		{"update", func(tx *rekindle.Tx) error { return items.Update(tx, &item{ID: 4, Name: "4"}) }},
		{"delete", func(tx *rekindle.Tx) error { return items.Delete(tx, &item{ID: 5}) }},
		{"unique", func(tx *rekindle.Tx) error { return items.Insert(tx, &item{ID: rows, Name: "6"}) }},
		{"scan", func(tx *rekindle.Tx) error {
			return items.Visit(tx, rekindle.Query{}, func(*item) error { return nil })
		}},
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			broken.Store(true)
			tx, err := db.Begin(t.Context(), true)
			require.NoError(t, err)
			defer tx.Rollback()
			err = c.call(tx)
			require.ErrorIs(t, err, syscall.EIO)
			var where *rekindle.ReadError
			require.ErrorAs(t, err, &where)
			require.Equal(t, "items", where.Table)
			require.NotZero(t, where.Row)
			require.NotZero(t, where.Offset)
			require.Contains(t, where.Path, ".log")
			require.NoError(t, items.Insert(tx, &item{ID: rows + 1, Name: "fresh"}), "the transaction goes on")
			broken.Store(false)
			if err = c.call(tx); c.name == "unique" {
				require.ErrorIs(t, err, rekindle.ErrDuplicateKey)
			} else {
				require.NoError(t, err)
			}
		})
	}
	require.NoError(t, db.Close(t.Context()))
}

// TestLimitBeyondBudget: rows are frozen before a writer is refused, so that what
// fills the memory in the end is the indexes and the array. Then reads still work,
// and so do deletes, after which there is room again.
func TestLimitBeyondBudget(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		if strategy == "rebuild" { // its index is not in the arena
			continue
		}
		if testing.Short() && strategy != "iacow" { // minutes under the race detector
			continue
		}
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{MemoryBudget: 6 << 20, MemoryLimit: 8 << 20, Durability: rekindle.None, IndexStrategy: strategy, CheckpointBytes: -1}
			fs := vfs.NewMem()
			db, items := openItems(t, fs, o)
			note := strings.Repeat("n", 400)
			const batch = 100
			rows := int64(0)
			for err := error(nil); err == nil; rows += batch {
				require.Less(t, rows, int64(400_000))
				err = db.Update(t.Context(), func(tx *rekindle.Tx) error {
					for id := rows; id < rows+batch; id++ {
						if err := items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id), Note: &note}); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					require.ErrorIs(t, err, rekindle.ErrMemoryLimit)
				}
			}
			rows -= batch
			t.Logf("%d rows, %+v", rows, db.Stats())
			require.Greater(t, rows*450, o.MemoryLimit*3/2)
			for id := int64(0); id < rows; id += 17 {
				get(t, db, items, id)
			}
			require.Len(t, allItems(t, db, items), int(rows))
			for first := int64(0); first < rows; first += batch {
				require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error {
					for id := first; id < min(first+batch, rows); id++ {
						if err := items.Delete(tx, &item{ID: id}); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			settle(t, db)
			require.NoError(t, db.Close(t.Context())) // IACoW keeps the memory of its nodes until then
			db, items = openItems(t, fs, o)
			fillItems(t, db, items, rows/4)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestLimitDelaysGarbage: index entries that cannot be removed for want of memory,
// as nodes are copied for that, are removed when there is some.
func TestLimitDelaysGarbage(t *testing.T) {
	const most = 12_000 // rows
	for _, strategy := range rekindle.IndexStrategies() {
		if strategy == "rebuild" { // its index is not in the arena
			continue
		}
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{MemoryBudget: 6 << 20, MemoryLimit: 8 << 20, Durability: rekindle.None, IndexStrategy: strategy, CheckpointBytes: -1}
			db, items := openItems(t, vfs.NewMem(), o)
			reader, err := db.Begin(t.Context(), false)
			require.NoError(t, err)
			rows := int64(0)
			fill := func() {
				for err := error(nil); err == nil && rows < most; rows++ {
					row := item{ID: rows, Name: fmt.Sprint(rows, strings.Repeat(" name", 150))}
					err = db.Update(t.Context(), func(tx *rekindle.Tx) error { return items.Insert(tx, &row) })
				}
			}
			remove := func(id int64) error {
				return db.Update(t.Context(), func(tx *rekindle.Tx) error { return items.Delete(tx, &item{ID: id}) })
			}
			fill()
			require.NoError(t, db.Checkpoint(t.Context()))
			for id := range rows {
				_ = remove(id) // may find no memory
				if id%500 == 0 {
					fill()
				}
			}
			require.NoError(t, reader.Rollback())
			for id := range rows {
				_ = remove(id)
			}
			require.Zero(t, settle(t, db).GarbageFailed)
			_, err = db.CrossCheck(t.Context())
			require.NoError(t, err)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestFreezerRests: where memory cannot come down to the budget, nobody looks for
// what could leave it again and again while nothing changes.
func TestFreezerRests(t *testing.T) {
	// Without a checkpoint the nodes of IACoW stay.
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{MemoryBudget: 1, CheckpointBytes: -1, IndexStrategy: "iacow"})
	fillItems(t, db, items, 100)
	rests := func() bool {
		rounds := db.FreezerRounds()
		time.Sleep(100 * time.Millisecond) // many rests
		return db.FreezerRounds() == rounds
	}
	require.Eventually(t, rests, 20*time.Second, time.Millisecond)
	before := db.FreezerRounds()
	require.NoError(t, insertItem(t, db, items, 1000, ""))
	require.Eventually(t, func() bool { return db.FreezerRounds() > before }, 20*time.Second, time.Millisecond)
	require.NoError(t, db.Close(t.Context()))
}
