package rekindle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// atLimit is a database that takes no more rows.
type atLimit struct {
	testing.TB
	fs    *vfs.Mem
	o     rekindle.Options
	db    *rekindle.DB
	items *rekindle.Table[item]
	next  int64
	rows  map[int64]string // names
	sizes map[int64]int    // of notes
}

// fill inserts rows until the limit, and then smaller ones.
func (l *atLimit) fill() (n int) {
	l.Helper()
	for _, size := range []int{700, 150, 0} {
		note := strings.Repeat("n", size)
		for {
			row := item{ID: l.next, Name: fmt.Sprintf("%0200d", l.next), Group: int32(l.next % 97), Note: &note}
			err := l.db.Update(l.Context(), func(tx *rekindle.Tx) error { return l.items.Insert(tx, &row) })
			if err != nil {
				require.ErrorIs(l, err, rekindle.ErrMemoryLimit)
				break
			}
			l.rows[l.next], l.sizes[l.next] = row.Name, size
			l.next++
			n++
		}
	}
	return n
}

// deleteEvery deletes each n-th row.
func (l *atLimit) deleteEvery(n int) {
	l.Helper()
	ids := slices.Sorted(maps.Keys(l.rows))
	var some []int64
	for i := 0; i < len(ids); i += n {
		some = append(some, ids[i])
	}
	l.deleteAll(some)
}

// deleteAll deletes rows, a few in a transaction.
func (l *atLimit) deleteAll(ids []int64) {
	l.Helper()
	for len(ids) > 0 {
		n := min(len(ids), 100)
		update(l, l.db, func(tx *rekindle.Tx) {
			for _, id := range ids[:n] {
				require.NoError(l, l.items.Delete(tx, &item{ID: id}))
			}
		})
		for _, id := range ids[:n] {
			delete(l.rows, id)
		}
		ids = ids[n:]
	}
}

// shrinkSome makes some rows smaller and changes their unique keys.
func (l *atLimit) shrinkSome() {
	l.Helper()
	done := 0
	for id := range l.rows {
		if l.sizes[id] < 100 {
			continue
		}
		row := item{ID: id, Name: fmt.Sprintf("s%0200d", id)}
		err := l.db.Update(l.Context(), func(tx *rekindle.Tx) error { return l.items.Update(tx, &row) })
		require.NoError(l, err, "after %d", done)
		l.rows[id], l.sizes[id] = row.Name, 0
		if done++; done == 200 {
			return
		}
	}
}

// check reads everything.
func (l *atLimit) check() {
	l.Helper()
	all := allItems(l, l.db, l.items)
	require.Len(l, all, len(l.rows))
	for i, row := range all {
		require.Equal(l, l.rows[row.ID], row.Name)
		if i%50 == 0 {
			require.NoError(l, l.db.View(l.Context(), func(tx *rekindle.Tx) error {
				return l.items.GetBy(tx, "name", &item{Name: row.Name})
			}))
		}
	}
	_, err := l.db.CrossCheck(l.Context())
	require.NoError(l, err)
}

// reopen begins another life on a disk.
func (l *atLimit) reopen(fs *vfs.Mem) {
	l.Helper()
	l.fs = fs
	l.db, l.items = openItems(l, fs, l.o)
	l.check()
}

// TestAtTheMemoryLimit: a database whose memory is used up reads, writes
// checkpoints, compacts its log, deletes, makes rows smaller and opens again, as
// often as it is filled up again.
func TestAtTheMemoryLimit(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{
				MemoryLimit: 4 << 20, MemoryBudget: -1, IndexStrategy: strategy, SegmentBytes: 1 << 20, CheckpointBytes: -1,
			}
			l := &atLimit{TB: t, fs: vfs.NewMem(), o: o, rows: map[int64]string{}, sizes: map[int64]int{}}
			l.db, l.items = openItems(t, l.fs, o)
			liveAtTheLimit(l)
		})
	}
}

func liveAtTheLimit(l *atLimit) {
	ctx := l.Context()
	require.Greater(l, l.fill(), 1000)
	l.check()
	for round := range 4 {
		require.NoError(l, l.db.Checkpoint(ctx), "round %d", round)
		l.fill()
		l.shrinkSome()
		require.NoError(l, l.db.Checkpoint(ctx), "round %d", round)
		require.NoError(l, l.db.Compact(ctx), "round %d", round)
		l.fill()
		l.deleteEvery(11)
		l.fill()
		l.check()
		if round%2 == 0 {
			require.NoError(l, l.db.Close(ctx))
			l.reopen(l.fs)
		} else {
			fs := l.fs.CrashClone(nil, vfs.Strict)
			require.NoError(l, l.db.Close(ctx))
			l.reopen(fs)
		}
		l.fill()
	}
	ids := slices.Sorted(maps.Keys(l.rows))
	l.deleteAll(ids[:len(ids)/2])
	require.NoError(l, l.db.Checkpoint(ctx))
	require.Greater(l, l.fill(), 100)
	l.check()
	require.NoError(l, l.db.Close(ctx))
}

// TestMemoryLimitTooSmall: a limit below what a recovery needs is an error that
// says so, and a larger one helps.
func TestMemoryLimitTooSmall(t *testing.T) {
	const rows = 4000
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			o := rekindle.Options{CheckpointBytes: -1, IndexStrategy: strategy}
			db, items := openItems(t, fs, o)
			for first := int64(0); first < rows; first += 200 {
				update(t, db, func(tx *rekindle.Tx) {
					for id := first; id < first+200; id++ {
						require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id, strings.Repeat(" name", 200))}))
					}
				})
			}
			crashed := fs.CrashClone(nil, vfs.Strict)
			require.NoError(t, db.Close(t.Context()))
			limits := []int64{1, 4<<20 - 1}
			if strategy != "rebuild" { // its index is not in the arena
				limits = append(limits, 4<<20)
			}
			for _, o.MemoryLimit = range limits {
				_, err := rekindle.Open(t.Context(), "/db", o.OnFS(crashed))
				require.ErrorIs(t, err, rekindle.ErrMemoryLimit)
				require.ErrorContains(t, err, fmt.Sprint("limit ", o.MemoryLimit))
			}
			o.MemoryLimit = 32 << 20
			db, items = openItems(t, crashed, o)
			require.Len(t, allItems(t, db, items), rows)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestRecoveryAtTheMemoryLimit: rows that have come and gone since the checkpoint have
// more index entries in the tail than fit into memory, and do not keep a database
// from opening with the limit that it had.
func TestRecoveryAtTheMemoryLimit(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{MemoryLimit: 4 << 20, MemoryBudget: -1, IndexStrategy: strategy, CheckpointBytes: -1}
			fs := vfs.NewMem()
			db, items := openItems(t, fs, o)
			const rows = 300
			for round := range 30 {
				update(t, db, func(tx *rekindle.Tx) {
					for id := range int64(rows) {
						require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id, " ", round, strings.Repeat(" name", 150))}))
					}
				})
				if round == 29 {
					break
				}
				update(t, db, func(tx *rekindle.Tx) {
					for id := range int64(rows) {
						require.NoError(t, items.Delete(tx, &item{ID: id}))
					}
				})
				settle(t, db)
			}
			crashed := fs.CrashClone(nil, vfs.Strict)
			require.NoError(t, db.Close(t.Context()))
			db, items = openItems(t, crashed, o)
			require.Len(t, allItems(t, db, items), rows)
			settle(t, db)
			_, err := db.CrossCheck(t.Context())
			require.NoError(t, err)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestLimitWithEmptySpans: what rows of all sizes have left is there for rows of
// one size before a writer is refused.
func TestLimitWithEmptySpans(t *testing.T) {
	fill := func(sizes int) (rows int64) {
		o := rekindle.Options{MemoryLimit: 4 << 20, MemoryBudget: -1, Durability: rekindle.None, CheckpointBytes: -1, IndexStrategy: "rebuild"}
		db, items := openItems(t, vfs.NewMem(), o)
		insert := func(id int64, bytes int) error {
			note := strings.Repeat("n", bytes)
			return db.Update(t.Context(), func(tx *rekindle.Tx) error { return items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id), Note: &note}) })
		}
		for i := range sizes {
			for range 8 {
				require.NoError(t, insert(1, 32+i*i*i*i/24))
				update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Delete(tx, &item{ID: 1})) })
			}
		}
		err := error(nil)
		for ; err == nil; rows++ {
			err = insert(rows, 2000)
		}
		require.ErrorIs(t, err, rekindle.ErrMemoryLimit)
		require.NoError(t, db.Close(t.Context()))
		return rows
	}
	without := fill(0)
	require.Greater(t, fill(25), without*5/6)
}
