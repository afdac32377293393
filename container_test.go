package rekindle_test

import (
	"fmt"
	"math"
	"path"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// container is a file system as a process in a container sees it.
func container(t *testing.T, limit int64) *vfs.Mem {
	t.Helper()
	fs := vfs.NewMem()
	for name, text := range map[string]string{
		"/proc/self/cgroup":         "0::/\n",
		"/proc/self/mountinfo":      "31 22 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/memory.max": fmt.Sprintln(limit),
	} {
		require.NoError(t, fs.MkdirAll(path.Dir(name)))
		require.NoError(t, vfs.WriteFileAtomic(fs, name, []byte(text)))
	}
	return fs
}

func TestDefaultMemoryBudget(t *testing.T) {
	budget := func(o rekindle.Options, fs vfs.FS) int64 { return o.OnFS(fs).Budget() }
	require.Zero(t, budget(rekindle.Options{}, vfs.NewMem()), "nothing is known")
	require.EqualValues(t, 500<<20, budget(rekindle.Options{}, container(t, 1000<<20)))
	require.Zero(t, budget(rekindle.Options{MemoryBudget: -1}, container(t, 1000<<20)))
	require.EqualValues(t, 7<<20, budget(rekindle.Options{MemoryBudget: 7 << 20}, container(t, 1000<<20)))

	before := debug.SetMemoryLimit(600 << 20)
	defer debug.SetMemoryLimit(before)
	require.EqualValues(t, 300<<20, budget(rekindle.Options{}, container(t, 1000<<20)))
	require.EqualValues(t, 100<<20, budget(rekindle.Options{}, container(t, 200<<20)))
	require.EqualValues(t, 300<<20, budget(rekindle.Options{}, vfs.NewMem()))
	debug.SetMemoryLimit(math.MaxInt64)
	require.Zero(t, budget(rekindle.Options{}, vfs.NewMem()))
}

// TestSmallContainer: a database of several times the memory works without an
// option.
func TestSmallContainer(t *testing.T) {
	const limit, rows = 4 << 20, 8000
	db, items := openItems(t, container(t, limit), rekindle.Options{})
	fillItems(t, db, items, rows)
	require.Eventually(t, func() bool { return db.Stats().ArenaInUse < limit }, 10*time.Second, 10*time.Millisecond)
	require.NotZero(t, db.Stats().RowsFrozen)
	require.Len(t, allItems(t, db, items), rows)
	require.NoError(t, db.Close(t.Context()))
}
