package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

func TestWithin(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	dir := filepath.Join(base, "db")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ckpt"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(base, "db2"), 0o700))
	for path, want := range map[string]bool{
		dir: true, dir + "/": true, "db": true, "db/ckpt": true, "db/no/such": true, dir + "/..name": true,
		"db/ckpt/../..": false, "db2": false, "db2/no/such": false, ".": false, "..": false, "/": false,
	} {
		require.Equal(t, want, vfs.Within(dir, path), path)
		require.Equal(t, want, vfs.Within("db", path), path)
	}
	if err := os.Symlink(filepath.Join(dir, "ckpt"), filepath.Join(base, "link")); err != nil {
		t.Skip("no symbolic links on this machine:", err)
	}
	require.True(t, vfs.Within(dir, "link"))
	require.True(t, vfs.Within(dir, "link/no/such"))
	require.False(t, vfs.Within("link", "db"))
}
