package usage

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseUsage(t *testing.T) {
	const (
		status = "Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t    1024 kB\n"
		io     = "rchar: 300\nwchar: 5\nread_bytes: 4096\n"
		maps   = `00400000-00401000 r-xp 00000000 08:02 173521  /usr/bin/x
7f00-7f0f rw-p 00000000 00:00 0
7f1000-7f3000 r--s 00000000 08:02 1  /data/db/ckpt/1/array-1.ria
7f3000-7f4000 r--s 00000000 08:02 2  /data/db/ckpt/1/index 1 (deleted)
7f4000-7f5000 r--s 00000000 08:02 3  /data/db2/x
`
	)
	u, err := parseUsage(status, io, maps, "/data/db")
	require.NoError(t, err)
	require.Equal(t, Usage{Known: true, Peak: 1 << 20, Mapped: 0x3000, Storage: 4096, Calls: 300}, u)
	for _, texts := range [][3]string{{"", io, maps}, {status, "rchar: x\nread_bytes: 1\n", maps}, {status, io, "zz /data/db/x\n"}} {
		_, err := parseUsage(texts[0], texts[1], texts[2], "/data/db")
		require.Error(t, err)
	}
}

func TestReadUsageSeesAMapping(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	f, err := os.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(1<<20))
	before, err := Read(link)
	require.NoError(t, err)
	require.Zero(t, before.Mapped)
	mapped, err := syscall.Mmap(int(f.Fd()), 0, 1<<20, syscall.PROT_READ, syscall.MAP_SHARED)
	require.NoError(t, err)
	after, err := Read(link)
	require.NoError(t, err)
	require.NoError(t, syscall.Munmap(mapped))
	require.EqualValues(t, 1<<20, after.Mapped)
	require.Greater(t, after.Calls, before.Calls)
	require.Positive(t, after.Peak)
}
