//go:build darwin || freebsd || linux

package rekindle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

// TestWorkingDirectoryChanges: a relative name means the directory that it meant when
// the database was opened.
func TestWorkingDirectoryChanges(t *testing.T) {
	there, elsewhere := t.TempDir(), t.TempDir()
	t.Chdir(there)
	db, items := openItemsAt(t, nil, "db")
	t.Chdir(elsewhere)
	_, err := rekindle.Open(t.Context(), filepath.Join(there, "db"), nil)
	require.ErrorIs(t, err, rekindle.ErrLocked)
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1})) })
	require.NoError(t, db.Checkpoint(t.Context()))
	require.NoError(t, db.Close(t.Context()))
	require.Empty(t, contents(t, elsewhere))

	t.Chdir(there)
	require.NoError(t, rekindle.Convert(t.Context(), "db", rekindle.IndexStrategies()[0], nil))
	report, err := rekindle.Verify(t.Context(), "db", nil)
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.EqualValues(t, 2, report.Rows, "one is the table")
	_, err = rekindle.Open(t.Context(), "", nil)
	require.ErrorIs(t, err, rekindle.ErrInvalidOptions)
}

// TestReplacedWhileOpen moves a database away while it is open, and puts a copy with
// the same identity, or nothing, in its place. What stands there is none of its
// business: nothing is read, made, changed or removed, and no commit is acknowledged
// that would need it.
func TestReplacedWhileOpen(t *testing.T) {
	for name, place := range map[string]struct {
		copied bool
		want   error
	}{
		"by a copy":  {true, rekindle.ErrForeignFile},
		"by nothing": {false, rekindle.ErrMissingFile},
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			dir, copied := filepath.Join(at, "db"), filepath.Join(at, "copy")
			db, err := rekindle.Open(t.Context(), dir, &rekindle.Options{SegmentBytes: 64 << 10})
			require.NoError(t, err)
			items, err := rekindle.OpenTable[item](t.Context(), db, "items")
			require.NoError(t, err)
			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "both"})) })
			_, err = db.Backup(t.Context(), copied)
			require.NoError(t, err)
			require.NoError(t, os.Rename(dir, dir+".moved"))
			if place.copied {
				require.NoError(t, os.Rename(copied, dir))
			}
			before := contents(t, at)

			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 2, Name: "moved"})) })
			require.ErrorIs(t, db.Checkpoint(t.Context()), place.want)
			acked := []item{{ID: 1, Name: "both"}, {ID: 2, Name: "moved"}}
			require.ErrorIs(t, fillUp(t, db, items, &acked), place.want)
			require.ErrorIs(t, fillUp(t, db, items, &acked), rekindle.ErrReadOnly)
			require.ErrorIs(t, db.Close(t.Context()), place.want)
			for path, content := range contents(t, at) {
				if filepath.Dir(path) == dir || filepath.Dir(filepath.Dir(path)) == dir {
					require.Equal(t, before[path], content, path)
				}
			}
			db, items = openItemsAt(t, nil, dir+".moved")
			require.Subset(t, allItems(t, db, items), acked)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// fillUp inserts rows until that fails, and notes them.
func fillUp(t *testing.T, db *rekindle.DB, items *rekindle.Table[item], acked *[]item) error {
	note := string(make([]byte, 1000))
	for id := int64(100); id < 1000; id++ {
		row := item{ID: id, Name: string(rune(id)), Note: &note}
		insert := func(tx *rekindle.Tx) error { return items.Insert(tx, &row) }
		if err := db.Update(t.Context(), insert); err != nil {
			return err
		}
		*acked = append(*acked, row)
	}
	return nil
}
