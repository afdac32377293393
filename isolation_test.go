package rekindle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// The tests here are named after the anomalies of Berenson et al. and Adya.
// Snapshot isolation forbids all of them but write skew.

type history struct {
	*testing.T
	db    *rekindle.DB
	items *rekindle.Table[item]
}

func newHistory(t *testing.T, rows ...item) history {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended by now
		_, err := db.CrossCheck(ctx)
		require.NoError(t, err)
		require.NoError(t, db.Close(ctx))
	})
	update(t, db, func(tx *rekindle.Tx) {
		for i := range rows {
			require.NoError(t, items.Insert(tx, &rows[i]))
		}
	})
	return history{t, db, items}
}

func (h history) begin() *rekindle.Tx {
	tx, err := h.db.Begin(h.Context(), true)
	require.NoError(h, err)
	return tx
}

func (h history) get(tx *rekindle.Tx, id int64) item {
	row := item{ID: id}
	require.NoError(h, h.items.Get(tx, &row))
	return row
}

func (h history) group(tx *rekindle.Tx, group int32) (ids []int64) {
	for row, err := range h.items.Scan(tx, rekindle.Query{Index: "group", Prefix: rekindle.Key(group)}) {
		require.NoError(h, err)
		ids = append(ids, row.ID)
	}
	return ids
}

func (h history) put(tx *rekindle.Tx, row item) { require.NoError(h, h.items.Upsert(tx, &row)) }
func (h history) remove(tx *rekindle.Tx, id int64) {
	require.NoError(h, h.items.Delete(tx, &item{ID: id}))
}
func (h history) commit(tx *rekindle.Tx)   { require.NoError(h, tx.Commit(h.Context())) }
func (h history) rollback(tx *rekindle.Tx) { require.NoError(h, tx.Rollback()) }

func TestDirtyWrite(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	t1, t2 := h.begin(), h.begin()
	h.put(t1, item{ID: 1, Name: "x", Group: 1})
	err := h.items.Update(t2, &item{ID: 1, Name: "x", Group: 2})
	require.ErrorIs(t, err, rekindle.ErrConflict)
	var conflict *rekindle.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "items", conflict.Table)
	require.Equal(t, "(1)", conflict.Key)
	require.NotEmpty(t, conflict.Reason)
	h.rollback(t2)
	h.commit(t1)
}

func TestDirtyRead(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	t1, t2 := h.begin(), h.begin()
	h.put(t1, item{ID: 1, Name: "y", Group: 1})
	require.Equal(t, item{ID: 1, Name: "x"}, h.get(t2, 1))
	h.rollback(t1)
	require.Equal(t, item{ID: 1, Name: "x"}, h.get(t2, 1))
	h.commit(t2)
}

func TestLostUpdate(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	t1, t2 := h.begin(), h.begin()
	h.get(t1, 1)
	h.get(t2, 1)
	h.put(t1, item{ID: 1, Name: "x", Group: 1})
	h.commit(t1)
	require.ErrorIs(t, h.items.Update(t2, &item{ID: 1, Name: "x", Group: 2}), rekindle.ErrConflict)
	h.rollback(t2)
}

func TestReadSkew(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"}, item{ID: 2, Name: "y"})
	t1, t2 := h.begin(), h.begin()
	require.EqualValues(t, 0, h.get(t1, 1).Group)
	h.put(t2, item{ID: 1, Name: "x", Group: 5})
	h.put(t2, item{ID: 2, Name: "y", Group: 5})
	h.commit(t2)
	require.EqualValues(t, 0, h.get(t1, 2).Group)
	h.commit(t1)
}

func TestPhantom(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x", Group: 1}, item{ID: 2, Name: "y", Group: 1})
	t1 := h.begin()
	require.Equal(t, []int64{1, 2}, h.group(t1, 1))
	t2 := h.begin()
	h.put(t2, item{ID: 3, Name: "z", Group: 1})
	h.put(t2, item{ID: 1, Name: "x", Group: 2})
	h.remove(t2, 2)
	h.commit(t2)
	require.Equal(t, []int64{1, 2}, h.group(t1, 1))
	require.Empty(t, h.group(t1, 2))
	h.commit(t1)
}

// TestWriteSkew documents what snapshot isolation allows.
func TestWriteSkew(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"}, item{ID: 2, Name: "y"})
	t1, t2 := h.begin(), h.begin()
	h.get(t1, 2)
	h.get(t2, 1)
	h.put(t1, item{ID: 1, Name: "x", Group: 1})
	h.put(t2, item{ID: 2, Name: "y", Group: 1})
	h.commit(t1)
	h.commit(t2)
}

func TestOwnWrites(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x", Group: 1})
	tx := h.begin()
	h.put(tx, item{ID: 1, Name: "y", Group: 2})
	h.put(tx, item{ID: 1, Name: "z", Group: 3})
	h.put(tx, item{ID: 2, Name: "x", Group: 1})
	require.Equal(t, "z", h.get(tx, 1).Name)
	require.Equal(t, []int64{2}, h.group(tx, 1))
	require.Empty(t, h.group(tx, 2))
	h.remove(tx, 2)
	h.put(tx, item{ID: 2, Name: "x", Group: 9})
	require.Equal(t, []int64{2}, h.group(tx, 9))
	h.commit(tx)
}

func TestUniqueKey(t *testing.T) {
	t.Run("two inserts in flight", func(t *testing.T) {
		h := newHistory(t)
		t1, t2 := h.begin(), h.begin()
		h.put(t1, item{ID: 1, Name: "x"})
		require.ErrorIs(t, h.items.Insert(t2, &item{ID: 2, Name: "x"}), rekindle.ErrConflict)
		h.rollback(t1)
		h.put(t2, item{ID: 2, Name: "x"})
		h.commit(t2)
	})
	t.Run("taken after the snapshot", func(t *testing.T) {
		h := newHistory(t)
		t1, t2 := h.begin(), h.begin()
		h.put(t1, item{ID: 1, Name: "x"})
		h.commit(t1)
		require.ErrorIs(t, h.items.Insert(t2, &item{ID: 2, Name: "x"}), rekindle.ErrConflict)
		h.rollback(t2)
	})
	t.Run("freed after the snapshot", func(t *testing.T) {
		h := newHistory(t, item{ID: 1, Name: "x"})
		t1, t2 := h.begin(), h.begin()
		h.remove(t1, 1)
		h.commit(t1)
		require.ErrorIs(t, h.items.Insert(t2, &item{ID: 2, Name: "x"}), rekindle.ErrConflict, "t2 sees row 1 with that key")
		h.rollback(t2)
		t3 := h.begin()
		h.put(t3, item{ID: 2, Name: "x"})
		h.commit(t3)
	})
	t.Run("being freed", func(t *testing.T) {
		h := newHistory(t, item{ID: 1, Name: "x"})
		t1, t2 := h.begin(), h.begin()
		h.put(t1, item{ID: 1, Name: "y"})
		require.ErrorIs(t, h.items.Insert(t2, &item{ID: 2, Name: "x"}), rekindle.ErrConflict)
		h.rollback(t1)
		require.ErrorIs(t, h.items.Insert(t2, &item{ID: 2, Name: "x"}), rekindle.ErrDuplicateKey)
		h.rollback(t2)
	})
	t.Run("delete then insert with an old reader", func(t *testing.T) {
		h := newHistory(t, item{ID: 1, Name: "x", Group: 1})
		reader := h.begin()
		require.Equal(t, "x", h.get(reader, 1).Name)
		for round := range int32(5) {
			tx := h.begin()
			h.remove(tx, 1)
			h.put(tx, item{ID: 1, Name: "x", Group: 2 + round})
			h.commit(tx)
		}
		require.Equal(t, []int64{1}, h.group(reader, 1))
		h.commit(reader)
		tx := h.begin()
		require.Equal(t, []int64{1}, h.group(tx, 6))
		h.commit(tx)
	})
	t.Run("rolled back insert frees the key", func(t *testing.T) {
		h := newHistory(t)
		for range 3 {
			tx := h.begin()
			h.put(tx, item{ID: 1, Name: "x"})
			h.rollback(tx)
		}
		tx := h.begin()
		h.put(tx, item{ID: 1, Name: "x"})
		h.commit(tx)
	})
}

// TestFailedStatement: a statement that fails leaves nothing behind, and its
// transaction can go on and commit.
func TestFailedStatement(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x", Group: 1}, item{ID: 2, Name: "y", Group: 1})
	tx := h.begin()
	require.ErrorIs(t, h.items.Update(tx, &item{ID: 2, Name: "x", Group: 7}), rekindle.ErrDuplicateKey)
	require.ErrorIs(t, h.items.Insert(tx, &item{ID: 3, Name: "y", Group: 7}), rekindle.ErrDuplicateKey)
	require.Equal(t, item{ID: 2, Name: "y", Group: 1}, h.get(tx, 2))
	require.Empty(t, h.group(tx, 7))
	h.put(tx, item{ID: 2, Name: "z", Group: 8})
	require.ErrorIs(t, h.items.Update(tx, &item{ID: 2, Name: "x", Group: 9}), rekindle.ErrDuplicateKey)
	require.Equal(t, item{ID: 2, Name: "z", Group: 8}, h.get(tx, 2))
	h.commit(tx)
	tx = h.begin()
	require.Equal(t, []int64{2}, h.group(tx, 8))
	require.Empty(t, h.group(tx, 9))
	h.commit(tx)
}

// TestHalloween: a loop that moves the rows it meets forward in the index it
// scans ends, and meets each row once.
func TestHalloween(t *testing.T) {
	var rows []item
	for i := range int64(200) {
		rows = append(rows, item{ID: i, Name: string(rune('a' + i)), Group: int32(i)})
	}
	h := newHistory(t, rows...)
	tx := h.begin()
	met := 0
	for row, err := range h.items.Scan(tx, rekindle.Query{Index: "group"}) {
		require.NoError(t, err)
		row.Group += 1000
		h.put(tx, row)
		h.put(tx, item{ID: row.ID + 10_000, Name: row.Name + "'", Group: row.Group + 1})
		met++
	}
	require.Equal(t, 200, met)
	for row, err := range h.items.Scan(tx, rekindle.Query{}) { // a new scan meets all of it
		require.NoError(t, err)
		require.GreaterOrEqual(t, row.Group, int32(1000))
		met--
	}
	require.Equal(t, -200, met)
	h.commit(tx)
}

func TestDeleteWhileIterating(t *testing.T) {
	var rows []item
	for i := range int64(300) {
		rows = append(rows, item{ID: i, Name: string(rune(0x4e00 + i)), Group: int32(i % 5)})
	}
	h := newHistory(t, rows...)
	tx := h.begin()
	var met []int64
	for row, err := range h.items.All(tx) {
		require.NoError(t, err)
		met = append(met, row.ID)
		h.remove(tx, row.ID)
		if row.ID+1 < 300 {
			h.remove(tx, row.ID+1) // the next one must not be met
		}
	}
	require.Len(t, met, 150)
	h.commit(tx)
	tx = h.begin()
	for range h.items.All(tx) {
		t.Fatal("a row is left")
	}
	h.commit(tx)
}

func TestEndedTransaction(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	tx := h.begin()
	h.commit(tx)
	other := h.begin() // takes the session over
	require.ErrorIs(t, h.items.Get(tx, &item{ID: 1}), rekindle.ErrTxDone)
	require.ErrorIs(t, h.items.Insert(tx, &item{ID: 2}), rekindle.ErrTxDone)
	require.ErrorIs(t, tx.Commit(t.Context()), rekindle.ErrTxDone)
	require.ErrorIs(t, tx.Rollback(), rekindle.ErrTxDone)
	for _, err := range h.items.All(tx) {
		require.ErrorIs(t, err, rekindle.ErrTxDone)
	}
	h.commit(other)

	reader, err := h.db.Begin(t.Context(), false)
	require.NoError(t, err)
	require.ErrorIs(t, h.items.Insert(reader, &item{ID: 2}), rekindle.ErrTxReadOnly)
	require.ErrorIs(t, h.items.Delete(reader, &item{ID: 1}), rekindle.ErrTxReadOnly)
	require.NoError(t, reader.Rollback())
}
