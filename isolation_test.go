package rekindle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// The tests here are named after the anomalies of Berenson et al. and Adya.
// Snapshot isolation forbids all of them but write skew and what comes of it: each
// line of the table in docs/reliability.md has its test.

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

// TestNonRepeatableRead: a row read twice is the same row, by whatever index, also
// when it is gone meanwhile.
func TestNonRepeatableRead(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x", Group: 1}, item{ID: 2, Name: "y", Group: 1})
	t1, t2 := h.begin(), h.begin()
	first := h.get(t1, 1)
	h.put(t2, item{ID: 1, Name: "z", Group: 2})
	h.remove(t2, 2)
	h.commit(t2)
	require.Equal(t, first, h.get(t1, 1))
	byName := item{Name: "x"}
	require.NoError(t, h.items.GetBy(t1, "name", &byName))
	require.Equal(t, first, byName)
	require.ErrorIs(t, h.items.GetBy(t1, "name", &item{Name: "z"}), rekindle.ErrNotFound)
	many := []item{{ID: 1}, {ID: 2}}
	missing, err := h.items.GetMany(t1, many)
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Equal(t, []item{first, {ID: 2, Name: "y", Group: 1}}, many)
	h.commit(t1)
}

// TestAbortedRead and TestIntermediateRead: nobody sees what is rolled back, or is
// written over by the same transaction.
func TestAbortedRead(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	t1 := h.begin()
	h.put(t1, item{ID: 1, Name: "y", Group: 1})
	h.put(t1, item{ID: 2, Name: "x", Group: 1})
	t2 := h.begin()
	h.rollback(t1)
	for _, tx := range []*rekindle.Tx{t2, h.begin()} {
		require.Equal(t, item{ID: 1, Name: "x"}, h.get(tx, 1))
		require.Empty(t, h.group(tx, 1))
		h.commit(tx)
	}
}

func TestIntermediateRead(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	t1 := h.begin()
	h.put(t1, item{ID: 1, Name: "x", Group: 1})
	t2 := h.begin()
	h.put(t1, item{ID: 1, Name: "x", Group: 2})
	h.commit(t1)
	require.EqualValues(t, 0, h.get(t2, 1).Group)
	h.commit(t2)
	t3 := h.begin()
	require.Empty(t, h.group(t3, 1))
	require.Equal(t, []int64{1}, h.group(t3, 2))
	h.commit(t3)
}

// TestCircularFlow: of two transactions at most one sees what the other has done.
func TestCircularFlow(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"}, item{ID: 2, Name: "y"})
	t1, t2 := h.begin(), h.begin()
	h.put(t1, item{ID: 1, Name: "x", Group: 1})
	h.put(t2, item{ID: 2, Name: "y", Group: 2})
	require.EqualValues(t, 0, h.get(t1, 2).Group)
	require.EqualValues(t, 0, h.get(t2, 1).Group)
	h.commit(t1)
	require.EqualValues(t, 0, h.get(t2, 1).Group, "after its commit too")
	h.commit(t2)
}

// TestCursorLostUpdate: a row that a loop stands on is no exception.
func TestCursorLostUpdate(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x", Group: 10})
	t1 := h.begin()
	for row, err := range h.items.All(t1) {
		require.NoError(t, err)
		t2 := h.begin()
		h.put(t2, item{ID: 1, Name: "x", Group: row.Group + 1})
		h.commit(t2)
		row.Group += 5
		require.ErrorIs(t, h.items.Update(t1, &row), rekindle.ErrConflict)
		require.ErrorIs(t, h.items.Delete(t1, &row), rekindle.ErrConflict)
	}
	h.rollback(t1)
}

// TestLostDelete and TestLostInsert: a row that another transaction has deleted or
// inserted since is not written over.
func TestLostDelete(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	t1, t2 := h.begin(), h.begin()
	h.remove(t2, 1)
	h.commit(t2)
	require.ErrorIs(t, h.items.Update(t1, &item{ID: 1, Name: "x", Group: 1}), rekindle.ErrConflict)
	require.ErrorIs(t, h.items.Upsert(t1, &item{ID: 1, Name: "x", Group: 1}), rekindle.ErrConflict)
	require.ErrorIs(t, h.items.Delete(t1, &item{ID: 1}), rekindle.ErrConflict)
	h.rollback(t1)
}

func TestLostInsert(t *testing.T) {
	h := newHistory(t)
	t1, t2 := h.begin(), h.begin()
	require.ErrorIs(t, h.items.Get(t1, &item{ID: 1}), rekindle.ErrNotFound)
	h.put(t2, item{ID: 1, Name: "x"})
	h.commit(t2)
	require.ErrorIs(t, h.items.Upsert(t1, &item{ID: 1, Name: "y"}), rekindle.ErrConflict)
	require.ErrorIs(t, h.items.Update(t1, &item{ID: 1, Name: "y"}), rekindle.ErrNotFound, "it does not see the row")
	h.rollback(t1)
}

// TestLongFork: readers agree about the order of the transactions that they see.
func TestLongFork(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"}, item{ID: 2, Name: "y"})
	w1, w2 := h.begin(), h.begin()
	h.put(w1, item{ID: 1, Name: "x", Group: 1})
	h.put(w2, item{ID: 2, Name: "y", Group: 1})
	h.commit(w1)
	r1 := h.begin()
	h.commit(w2)
	r2 := h.begin()
	require.EqualValues(t, 1, h.get(r2, 2).Group)
	require.EqualValues(t, 1, h.get(r2, 1).Group, "who sees the second sees the first")
	require.EqualValues(t, 1, h.get(r1, 1).Group)
	require.EqualValues(t, 0, h.get(r1, 2).Group)
	h.commit(r1)
	h.commit(r2)
}

// TestReadYourCommits: a transaction that begins after a commit was acknowledged
// sees it. Only a commit that did not wait for the disk, in a database whose
// commits do, is not seen by readers before it is there.
func TestReadYourCommits(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"})
	for n := range int32(50) {
		t1 := h.begin()
		h.put(t1, item{ID: 1, Name: "x", Group: n})
		h.commit(t1)
		require.NoError(t, h.db.View(t.Context(), func(tx *rekindle.Tx) error {
			require.Equal(t, n, h.get(tx, 1).Group)
			return nil
		}))
	}
	t1 := h.begin()
	require.NoError(t, t1.SetDurability(rekindle.None))
	h.put(t1, item{ID: 1, Name: "x", Group: 100})
	h.commit(t1)
	t2 := h.begin()
	require.EqualValues(t, 100, h.get(t2, 1).Group, "a transaction that may write sees what is visible")
	h.commit(t2) // and waits until it is durable
	require.NoError(t, h.db.View(t.Context(), func(tx *rekindle.Tx) error {
		require.EqualValues(t, 100, h.get(tx, 1).Group)
		return nil
	}))
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

// TestWriteSkewOfRanges: each of two transactions counts a group that is empty and
// adds to it; or adds a row whose absence the other one relies on.
func TestWriteSkewOfRanges(t *testing.T) {
	t.Run("count of an empty prefix", func(t *testing.T) {
		h := newHistory(t)
		t1, t2 := h.begin(), h.begin()
		require.Empty(t, h.group(t1, 7))
		require.Empty(t, h.group(t2, 7))
		h.put(t1, item{ID: 1, Name: "x", Group: 7})
		h.put(t2, item{ID: 2, Name: "y", Group: 7})
		h.commit(t1)
		h.commit(t2)
		t3 := h.begin()
		require.Equal(t, []int64{1, 2}, h.group(t3, 7))
		h.commit(t3)
	})
	t.Run("absent keys", func(t *testing.T) {
		h := newHistory(t)
		t1, t2 := h.begin(), h.begin()
		require.ErrorIs(t, h.items.Get(t1, &item{ID: 2}), rekindle.ErrNotFound)
		require.ErrorIs(t, h.items.Get(t2, &item{ID: 1}), rekindle.ErrNotFound)
		h.put(t1, item{ID: 1, Name: "x"})
		h.put(t2, item{ID: 2, Name: "y"})
		h.commit(t1)
		h.commit(t2)
	})
	t.Run("a unique key stands for the count", func(t *testing.T) { // what to do about it
		h := newHistory(t)
		t1, t2 := h.begin(), h.begin()
		require.Empty(t, h.group(t1, 7))
		require.Empty(t, h.group(t2, 7))
		h.put(t1, item{ID: 1, Name: "first of group 7", Group: 7})
		require.ErrorIs(t, h.items.Insert(t2, &item{ID: 2, Name: "first of group 7", Group: 7}), rekindle.ErrConflict)
		h.commit(t1)
		h.rollback(t2)
	})
}

// TestReadOnlyAnomaly: a reader sees a batch closed without a receipt that joins it
// later (Fekete, O'Neil and O'Neil).
func TestReadOnlyAnomaly(t *testing.T) {
	const batch, receipt = 1, 2
	h := newHistory(t, item{ID: batch, Name: "batch", Group: 1})
	adds := h.begin()
	require.EqualValues(t, 1, h.get(adds, batch).Group)
	closes := h.begin()
	h.put(closes, item{ID: batch, Name: "batch", Group: 2})
	h.commit(closes)
	reads := h.begin()
	require.EqualValues(t, 2, h.get(reads, batch).Group)
	require.ErrorIs(t, h.items.Get(reads, &item{ID: receipt}), rekindle.ErrNotFound)
	h.commit(reads)
	h.put(adds, item{ID: receipt, Name: "receipt", Group: 1})
	h.commit(adds)
}

// TestSkewPromoted: who writes what it read, unchanged, is in no skew.
func TestSkewPromoted(t *testing.T) {
	h := newHistory(t, item{ID: 1, Name: "x"}, item{ID: 2, Name: "y"})
	t1, t2 := h.begin(), h.begin()
	h.put(t1, h.get(t1, 2))
	h.put(t1, item{ID: 1, Name: "x", Group: 1})
	require.ErrorIs(t, h.items.Upsert(t2, &item{ID: 2, Name: "y", Group: 1}), rekindle.ErrConflict)
	h.rollback(t2)
	h.commit(t1)
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
