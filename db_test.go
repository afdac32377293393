package rekindle_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

type item struct {
	ID    int64  `rekindle:",pk"`
	Name  string `rekindle:",unique"`
	Group int32  `rekindle:",index"`
	Note  *string
}

func openItems(t testing.TB, fs vfs.FS, o rekindle.Options) (*rekindle.DB, *rekindle.Table[item]) {
	t.Helper()
	db, err := rekindle.Open(t.Context(), "/db", o.OnFS(fs))
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	return db, items
}

func update(t testing.TB, db *rekindle.DB, fn func(tx *rekindle.Tx)) {
	t.Helper()
	require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error {
		fn(tx)
		return nil
	}))
}

func allItems(t testing.TB, db *rekindle.DB, items *rekindle.Table[item]) []item {
	t.Helper()
	var all []item
	require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
		for row, err := range items.All(tx) {
			if err != nil {
				return err
			}
			all = append(all, row)
		}
		return nil
	}))
	return all
}

func TestStatements(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	note := "hello"
	update(t, db, func(tx *rekindle.Tx) {
		require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "one", Group: 7}))
		require.NoError(t, items.Insert(tx, &item{ID: 2, Name: "two", Group: 7, Note: &note}))
		require.ErrorIs(t, items.Insert(tx, &item{ID: 1, Name: "uno"}), rekindle.ErrDuplicateKey)
		require.ErrorIs(t, items.Insert(tx, &item{ID: 3, Name: "two"}), rekindle.ErrDuplicateKey)
		require.ErrorIs(t, items.Update(tx, &item{ID: 9, Name: "nine"}), rekindle.ErrNotFound)
		require.ErrorIs(t, items.Update(tx, &item{ID: 1, Name: "two"}), rekindle.ErrDuplicateKey)
		require.NoError(t, items.Update(tx, &item{ID: 1, Name: "uno", Group: 8}))
		require.NoError(t, items.Upsert(tx, &item{ID: 3, Name: "one"}))
	})
	require.Equal(t, []item{{1, "uno", 8, nil}, {2, "two", 7, &note}, {3, "one", 0, nil}}, allItems(t, db, items))
	update(t, db, func(tx *rekindle.Tx) {
		require.NoError(t, items.Delete(tx, &item{ID: 2}))
		require.ErrorIs(t, items.Delete(tx, &item{ID: 2}), rekindle.ErrNotFound)
		row := item{ID: 2}
		require.ErrorIs(t, items.Get(tx, &row), rekindle.ErrNotFound)
		row = item{Name: "uno"}
		require.NoError(t, items.GetBy(tx, "name", &row))
		require.Equal(t, item{1, "uno", 8, nil}, row)
	})
	_, err := db.CrossCheck(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
}

func TestReopen(t *testing.T) {
	fs := vfs.NewMem()
	var want []item
	for round := range 10 {
		db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10})
		require.Equal(t, want, allItems(t, db, items), "round %d", round)
		_, err := db.CrossCheck(t.Context())
		require.NoError(t, err)
		for i := range 50 {
			row := item{ID: int64(round*50 + i), Name: string(rune('a'+round)) + string(rune('A'+i)), Group: int32(i)}
			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &row)) })
			want = append(want, row)
		}
		require.NoError(t, db.Close(t.Context()))
	}
}

func TestRecoverWithoutClose(t *testing.T) {
	fs := vfs.NewMem()
	db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10})
	for i := range 500 {
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Insert(tx, &item{ID: int64(i), Name: string(rune(0x4e00 + i)), Group: int32(i % 3)}))
		})
		if i == 250 {
			require.NoError(t, db.Checkpoint(t.Context()))
		}
	}
	want := allItems(t, db, items)
	require.Len(t, want, 500)

	crashed := fs.CrashClone(nil, vfs.Strict)
	again, items2 := openItems(t, crashed, rekindle.Options{})
	require.Equal(t, want, allItems(t, again, items2))
	require.EqualValues(t, 249, again.RecoveryReport().RecordsReplayed)
	_, err := again.CrossCheck(t.Context())
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
	require.NoError(t, db.Close(context.Background()))
}

func TestGetMany(t *testing.T) {
	fs := vfs.NewMem()
	db, items := openItems(t, fs, rekindle.Options{})
	update(t, db, func(tx *rekindle.Tx) {
		for i := range int64(300) {
			require.NoError(t, items.Insert(tx, &item{ID: 2 * i, Name: string(rune(0x4e00 + i)), Group: int32(i)}))
		}
	})
	check := func(db *rekindle.DB, items *rekindle.Table[item]) {
		rows := make([]item, 500)
		for i := range rows {
			rows[i].ID = int64(i)
		}
		require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
			missing, err := items.GetMany(tx, rows)
			require.NoError(t, err)
			require.Len(t, missing, 250)
			for i, m := range missing {
				require.Equal(t, 2*i+1, m)
				require.Equal(t, item{ID: int64(m)}, rows[m])
			}
			for i := 0; i < 500; i += 2 {
				require.Equal(t, item{ID: int64(i), Name: string(rune(0x4e00 + i/2)), Group: int32(i / 2)}, rows[i])
			}
			missing, err = items.GetMany(tx, nil)
			require.Empty(t, missing)
			return err
		}))
	}
	check(db, items)
	require.NoError(t, db.Close(t.Context()))
	db, items = openItems(t, fs, rekindle.Options{}) // all rows are in the log now
	check(db, items)
	require.NoError(t, db.Close(t.Context()))
}

func TestVisit(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	note := "kept"
	update(t, db, func(tx *rekindle.Tx) {
		for i := range int64(200) {
			require.NoError(t, items.Insert(tx, &item{ID: i, Name: string(rune(0x4e00 + i)), Note: &note}))
		}
	})
	want := allItems(t, db, items)
	var notes []*string
	require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
		n := 0
		return items.Visit(tx, rekindle.Query{}, func(row *item) error {
			require.Equal(t, want[n], *row)
			notes = append(notes, row.Note)
			n++
			return nil
		})
	}))
	require.Len(t, notes, 200)
	for _, n := range notes {
		require.Equal(t, "kept", *n)
	}
	require.ErrorIs(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
		return items.Visit(tx, rekindle.Query{}, func(*item) error { return errStop })
	}), errStop)
	require.NoError(t, db.Close(t.Context()))
}

// TestMovedDatabase: nothing in a database depends on the path that it was
// opened by.
func TestMovedDatabase(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			home := t.TempDir()
			t.Chdir(home)
			require.NoError(t, os.MkdirAll("a/b", 0o777))
			paths := []string{filepath.Join(home, "a/one"), "two", "./a/../a/b/three", filepath.Join(home, "four"), "a/five"}
			before := ""
			for i, path := range paths {
				if i > 0 {
					require.NoError(t, os.Rename(before, path))
				}
				before = path
				lifeAt(t, path, strategy, i)
			}
			require.NoError(t, os.Symlink(paths[4], "link"))
			lifeAt(t, "link", strategy, len(paths))
		})
	}
}

// lifeAt opens the database that had n lives, checks its n rows, adds one,
// and leaves two checkpoints and a tail.
func lifeAt(t *testing.T, path, strategy string, n int) {
	db, err := rekindle.Open(t.Context(), path, &rekindle.Options{IndexStrategy: strategy, VerifyOnOpen: true})
	require.NoError(t, err)
	require.Empty(t, db.RecoveryReport().Fallbacks)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	require.Len(t, allItems(t, db, items), n)
	update(t, db, func(tx *rekindle.Tx) {
		require.NoError(t, items.Insert(tx, &item{ID: int64(n), Name: path}))
	})
	for range 2 {
		require.NoError(t, db.Checkpoint(t.Context()))
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Update(tx, &item{ID: int64(n), Name: path, Group: 1}))
		})
	}
	_, err = db.CrossCheck(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
}
