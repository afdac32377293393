package vfs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A long test makes and removes many directories; their changes must not pile
// up, although nobody syncs a directory that is about to be removed.
func TestJournalStaysSmall(t *testing.T) {
	mem := NewMem()
	for i := range 50 {
		dir := fmt.Sprintf("ckpt/%d", i)
		require.NoError(t, mem.MkdirAll(dir))
		require.NoError(t, mem.SyncDir("ckpt"))
		require.NoError(t, WriteFileAtomic(mem, dir+"/array", []byte("x")))
		require.NoError(t, mem.Remove(dir+"/array"))
		require.NoError(t, mem.Remove(dir))
		require.NoError(t, mem.SyncDir("ckpt"))
	}
	require.NoError(t, mem.SyncDir("."))
	require.Empty(t, mem.journal)
}
