package vfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResidentFiles(t *testing.T) {
	if !MapsFiles {
		t.Skip("files are read, not mapped")
	}
	const size = 32 << 20
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o666))
	before := ResidentFiles()
	require.Positive(t, before)
	m, err := OS().Map(path)
	require.NoError(t, err)
	defer m.Close()
	var sum byte
	for at := 0; at < size; at += 4096 {
		sum += m.Bytes()[at]
	}
	require.Zero(t, sum)
	require.InDelta(t, before+size, ResidentFiles(), size/8)
}
