package dataset

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func openDB(t *testing.T) *rekindle.DB {
	t.Helper()
	db, err := rekindle.Open(t.Context(), t.TempDir(), &rekindle.Options{SegmentBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.Background())) })
	return db
}

func TestEveryNumberOfIndexes(t *testing.T) {
	for indexes := 1; indexes <= MaxIndexes; indexes++ {
		db := openDB(t)
		table, err := Open(t.Context(), db, indexes)
		require.NoError(t, err)
		require.Len(t, db.Tables()[0].Indexes, indexes)
		var done atomic.Int64
		require.NoError(t, Load(t.Context(), db, table, 0, 2500, func(n, total int64) {
			done.Add(1)
			require.EqualValues(t, 2500, total)
		}))
		require.EqualValues(t, 3, done.Load())
		requireRow(t, db, table.Session())
		rows, err := db.CrossCheck(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, rows, int64(2500), "the catalogue has rows, too")
	}
}

// requireRow tries every operation on one row.
func requireRow(t *testing.T, db *rekindle.DB, s Session) {
	t.Helper()
	require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error {
		require.NoError(t, s.Get(tx, Key(2499)))
		require.ErrorIs(t, s.Get(tx, Key(2500)), rekindle.ErrNotFound)
		require.ErrorIs(t, s.Insert(tx, Key(7)), rekindle.ErrDuplicateKey)
		require.NoError(t, s.Update(tx, Key(7), 1))
		require.NoError(t, s.Get(tx, Key(7)))
		require.NoError(t, s.Delete(tx, Key(7)))
		require.ErrorIs(t, s.Update(tx, Key(7), 1), rekindle.ErrNotFound)
		return s.Insert(tx, Key(7))
	}))
}

func TestIndexesOutOfRange(t *testing.T) {
	for _, indexes := range []int{0, MaxIndexes + 1} {
		_, err := Open(t.Context(), nil, indexes)
		require.ErrorContains(t, err, "indexes must be 1 to 4")
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	db := openDB(t)
	table, err := Open(t.Context(), db, 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	err = Load(ctx, db, table, 0, 1<<40, func(int64, int64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
}

func TestLoadReportsAnError(t *testing.T) {
	db := openDB(t)
	table, err := Open(t.Context(), db, 1)
	require.NoError(t, err)
	ignore := func(int64, int64) {}
	require.NoError(t, Load(t.Context(), db, table, 0, 10, ignore))
	require.ErrorIs(t, Load(t.Context(), db, table, 9, 20, ignore), rekindle.ErrDuplicateKey)
}

func TestVersionsDifferAndWrongRowsAreFound(t *testing.T) {
	var a, b row
	a.fill(1, 0)
	b.fill(1, 1)
	require.Len(t, a.Value, valueSize)
	require.False(t, bytes.Equal(a.Value, b.Value))
	require.NoError(t, a.check(1))
	require.NoError(t, b.check(1))
	require.Error(t, a.check(2))
	b.Value = b.Value[:valueSize-1]
	require.Error(t, b.check(1))
	a.Value[0]++
	require.Error(t, a.check(1))
}
