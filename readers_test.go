package rekindle_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var hotUpdates = flag.Int("hot.updates", 40_000, "updates of TestHotRowsUnderAnOldReader for each strategy")

// oldReader is an open transaction and what it has to see for as long as it is.
type oldReader struct {
	tx   *rekindle.Tx
	rows map[int64]item
}

// TestOldReadersModel runs random transactions while readers come and go in any
// order. Each reader sees its snapshot, through every index, until its end; when
// the last one has gone there is one version a row and one entry a key, and also
// after a power cut while readers are open. In every second run the log is
// compacted meanwhile.
func TestOldReadersModel(t *testing.T) {
	forModels(t, rekindle.Options{}, func(m *model) {
		m.withReaders(400)
		m.nothingLeft()
		require.EqualValues(m.t, len(m.rows)+1, m.db.Stats().RowIDs, "and the one of the catalogue")
		require.NoError(m.t, m.db.Close(m.t.Context()))
	})
}

func (m *model) withReaders(steps int) {
	var readers []oldReader
	for range steps {
		switch n := m.rng.IntN(100); {
		case n < 70:
			m.transaction()
		case n < 80 && len(readers) < 6:
			tx, err := m.db.Begin(m.t.Context(), false)
			require.NoError(m.t, err)
			readers = append(readers, oldReader{tx, maps.Clone(m.rows)})
		case n < 90 && len(readers) > 0:
			i := m.rng.IntN(len(readers))
			m.sees(readers[i])
			require.NoError(m.t, readers[i].tx.Rollback())
			readers = slices.Delete(readers, i, i+1)
		case n < 92:
			require.NoError(m.t, m.db.Checkpoint(m.t.Context()))
		case len(readers) > 0:
			m.sees(readers[m.rng.IntN(len(readers))])
		}
	}
	m.afterPowerCut()
	for _, r := range readers {
		m.sees(r)
		require.NoError(m.t, r.tx.Rollback())
	}
}

// afterPowerCut looks at what a power cut now would leave.
func (m *model) afterPowerCut() {
	n := *m
	n.fs = m.fs.CrashClone(m.rng, vfs.Random)
	n.reopen()
	n.nothingLeft()
	require.NoError(m.t, n.db.Close(m.t.Context()))
}

// sees checks a reader's rows through all indexes.
func (m *model) sees(r oldReader) {
	for _, index := range []string{"", "name", "group"} {
		got := map[int64]item{}
		for row, err := range m.items.Scan(r.tx, rekindle.Query{Index: index}) {
			require.NoError(m.t, err)
			got[row.ID] = row
		}
		require.Equal(m.t, r.rows, got, "index %q", index)
	}
}

// nothingLeft checks that nothing is there but the rows.
func (m *model) nothingLeft() {
	m.compare(m.db)
	stats := settle(m.t, m.db)
	require.Zero(m.t, stats.GarbageFailed)
	entries, err := m.db.ScanEntries()
	require.NoError(m.t, err)
	require.EqualValues(m.t, 3*len(m.rows)+2, entries, "three indexes, and two of the catalogue")
}

// TestHotRowsUnderAnOldReader: what a reader holds back is bounded by what it
// sees, not by the commits since: a few rows are updated again and again, with
// new keys and back to old ones, and rows come and go.
func TestHotRowsUnderAnOldReader(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{IndexStrategy: strategy, CheckpointBytes: -1, Durability: rekindle.None}
			db, err := rekindle.Open(t.Context(), t.TempDir(), &o) // the log of a Mem would be on the heap
			require.NoError(t, err)
			items, err := rekindle.OpenTable[item](t.Context(), db, "items")
			require.NoError(t, err)
			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "first"})) })
			reader, err := db.Begin(t.Context(), true)
			require.NoError(t, err)
			hotUpdate(t, db, items, *hotUpdates/10)
			early, heap := collected(t, db), liveHeap()
			hotUpdate(t, db, items, *hotUpdates)
			late := collected(t, db)
			require.LessOrEqual(t, late.ArenaInUse, early.ArenaInUse+(2<<20), "arena")
			require.LessOrEqual(t, late.IndexEntries, early.IndexEntries+50, "index entries")
			require.LessOrEqual(t, late.RowIDs, early.RowIDs+20, "row identities")
			require.Less(t, liveHeap()-heap, int64(2<<20), "Go heap")
			row := item{ID: 1}
			require.NoError(t, items.Get(reader, &row))
			require.Equal(t, item{ID: 1, Name: "first"}, row)
			require.NoError(t, reader.Rollback())
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// collected waits until only what the reader holds back is left.
func collected(t *testing.T, db *rekindle.DB) rekindle.Stats {
	t.Helper()
	require.Eventually(t, func() bool { return db.Stats().GarbageQueued <= 10 }, 10*time.Second, time.Millisecond)
	return db.Stats()
}

func hotUpdate(t *testing.T, db *rekindle.DB, items *rekindle.Table[item], n int) {
	for i := range n {
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Upsert(tx, &item{ID: 1, Name: fmt.Sprint("name", i%3), Group: int32(i)}))
			come := item{ID: int64(2 + i%10), Name: fmt.Sprint(i % 10)}
			if i/10%2 == 0 {
				require.NoError(t, items.Upsert(tx, &come))
			} else {
				require.NoError(t, items.Delete(tx, &come))
			}
		})
	}
}

// tooOld waits until a transaction says that it was ended for its age.
func tooOld(t *testing.T, call func() error) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool { err = call(); return err != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, err, rekindle.ErrSnapshotTooOld)
}

func TestMaxSnapshotAge(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{MaxSnapshotAge: 20 * time.Millisecond, CheckpointBytes: -1})
	update(t, db, func(tx *rekindle.Tx) {
		for id := range int64(300) {
			require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id)}))
		}
	})
	get := func(tx *rekindle.Tx) func() error {
		return func() error { return items.Get(tx, &item{ID: 1}) }
	}
	t.Run("reader", func(t *testing.T) {
		tx, err := db.Begin(t.Context(), false)
		require.NoError(t, err)
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Update(tx, &item{ID: 1, Name: "1", Group: 1})) })
		tooOld(t, get(tx))
		require.Zero(t, settle(t, db).OldVersions)
		for range 3 * 64 { // whoever comes later does not get its session before it knows
			require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error { return items.Get(tx, &item{ID: 1}) }))
			require.ErrorIs(t, get(tx)(), rekindle.ErrSnapshotTooOld)
		}
		require.ErrorIs(t, tx.Rollback(), rekindle.ErrSnapshotTooOld)
		require.ErrorIs(t, tx.Rollback(), rekindle.ErrTxDone)
	})
	t.Run("writer", func(t *testing.T) {
		tx, err := db.Begin(t.Context(), true)
		require.NoError(t, err)
		require.NoError(t, items.Update(tx, &item{ID: 2, Name: "new"}))
		require.NoError(t, items.Insert(tx, &item{ID: 1000, Name: "inserted"}))
		tooOld(t, get(tx))
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Update(tx, &item{ID: 2, Name: "inserted"}))
			require.NoError(t, items.Insert(tx, &item{ID: 1000, Name: "new"}))
		})
		require.ErrorIs(t, tx.Commit(t.Context()), rekindle.ErrSnapshotTooOld)
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Delete(tx, &item{ID: 1000})) })
	})
	t.Run("iterator", func(t *testing.T) {
		tx, err := db.Begin(t.Context(), false)
		require.NoError(t, err)
		rows := 0
		for _, err = range items.All(tx) {
			if err != nil {
				break
			}
			rows++
			time.Sleep(time.Millisecond)
		}
		require.ErrorIs(t, err, rekindle.ErrSnapshotTooOld)
		require.Less(t, rows, 300)
		require.ErrorIs(t, tx.Rollback(), rekindle.ErrSnapshotTooOld)
	})
	t.Run("View and Update", func(t *testing.T) {
		slow := func(tx *rekindle.Tx) error { tooOld(t, get(tx)); return get(tx)() }
		require.ErrorIs(t, db.View(t.Context(), slow), rekindle.ErrSnapshotTooOld)
		calls := 0
		err := db.Update(t.Context(), func(tx *rekindle.Tx) error { calls++; tooOld(t, get(tx)); return nil })
		require.ErrorIs(t, err, rekindle.ErrSnapshotTooOld, "its commit")
		require.Equal(t, 1, calls, "it is not tried again")
	})
	require.EqualValues(t, 5, db.Stats().SnapshotsTooOld)
	require.Zero(t, db.Stats().OpenTransactions)
	require.NoError(t, db.Close(t.Context()))
}

// TestCloseNamesLeaks: the error of Close says what was left open and where it
// began; OpenTransactions and Stats have said so before.
func TestCloseNamesLeaks(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{TraceTransactions: true})
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "1"})) })
	before := db.Stats()
	require.Zero(t, before.OldestSnapshotAge)
	leak := func(writable bool) *rekindle.Tx {
		tx, err := db.Begin(t.Context(), writable)
		require.NoError(t, err)
		return tx
	}
	leak(true)
	db.Stats() // sees it for the first time
	time.Sleep(5 * time.Millisecond)
	reader := leak(false)
	next, stop := iter.Pull2(items.All(reader))
	_, err, _ := next()
	require.NoError(t, err)

	stats := db.Stats()
	require.Equal(t, 2, stats.OpenTransactions)
	require.GreaterOrEqual(t, stats.OldestSnapshotAge, 5*time.Millisecond)
	require.Equal(t, before.VisibleCTS, stats.OldestSnapshot)
	open := db.OpenTransactions()
	require.Len(t, open, 2)
	require.Equal(t, []bool{true, false}, []bool{open[0].Writable, open[1].Writable})
	require.Contains(t, open[0].Began(), "TestCloseNamesLeaks")
	require.NotContains(t, open[0].Began(), "rekindle.(*DB)")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = db.Close(ctx)
	require.ErrorIs(t, err, rekindle.ErrOpenTransactions)
	var leaks *rekindle.OpenTransactionsError
	require.ErrorAs(t, err, &leaks)
	require.Len(t, leaks.Transactions, 2)
	require.Equal(t, 1, leaks.Transactions[1].Iterators)
	require.Regexp(t, `still open: 2; writable, .* old, begun at .*readers_test.go:\d+; read-only, .* old, open iterators: 1, begun at .*readers_test.go:\d+`, leaks.Error())
	stop()
	require.ErrorIs(t, reader.Rollback(), rekindle.ErrClosed)
}
