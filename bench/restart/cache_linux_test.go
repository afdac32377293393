package restart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/bench/usage"
)

func TestDropFilesReadsTheStorageAgain(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "below", "f")
	require.NoError(t, os.Mkdir(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, make([]byte, 4<<20), 0o600))
	require.NoError(t, DropFiles(dir))
	before, err := usage.Read(dir)
	require.NoError(t, err)
	_, err = os.ReadFile(name)
	require.NoError(t, err)
	after, err := usage.Read(dir)
	require.NoError(t, err)
	if after.Storage == before.Storage {
		t.Skip("the temporary directory has no storage below its cache")
	}
	after.Since(before)
	require.GreaterOrEqual(t, after.Storage, int64(2<<20))
	require.ErrorIs(t, DropFiles(filepath.Join(dir, "absent")), os.ErrNotExist)
}
