//go:build darwin || freebsd || linux

package rekindle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

// TestCopiesApart: neither a backup nor what is salvaged goes into the folder of
// the database, whichever path is relative, nor into one that holds another.
func TestCopiesApart(t *testing.T) {
	disk, _ := lived(t)
	root := t.TempDir()
	files := onDisk(t, disk, filepath.Join(root, "db"))
	onDisk(t, disk, filepath.Join(root, "other"))
	require.NotEmpty(t, files)
	t.Chdir(root)
	before := contents(t, root)
	for _, to := range []string{"db", filepath.Join(root, "db"), filepath.Join(root, "db", "sub"), "other"} {
		_, err := rekindle.Salvage(t.Context(), "db", to, nil)
		require.ErrorIs(t, err, rekindle.ErrInvalidOptions, to)
	}
	require.Equal(t, before, contents(t, root))

	db, err := rekindle.Open(t.Context(), "db", nil)
	require.NoError(t, err)
	for _, to := range []string{"db", filepath.Join(root, "db", "ckpt", "000099")} {
		_, err := db.Backup(t.Context(), to)
		require.ErrorIs(t, err, rekindle.ErrInvalidOptions, to)
	}
	if os.Symlink("db", "link") == nil { // not on every system
		for _, to := range []string{"link", filepath.Join("link", "ckpt", "sub")} {
			_, err := db.Backup(t.Context(), to)
			require.ErrorIs(t, err, rekindle.ErrInvalidOptions, to)
		}
	}
	require.NoError(t, db.Close(t.Context()))
}
