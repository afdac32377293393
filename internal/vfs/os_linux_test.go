package vfs_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// asNobody runs f on a thread whose file accesses are those of a user without
// any rights, whoever runs the test.
func asNobody(t *testing.T, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	before, err := unix.SetfsuidRetUid(nobody)
	require.NoError(t, err)
	defer func() {
		_, err := unix.SetfsuidRetUid(before)
		require.NoError(t, err)
	}()
	f()
}

func TestLockInReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "LOCK")
	require.NoError(t, os.WriteFile(path, []byte("bytes"), 0o444))
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o555))
	}
	t.Cleanup(func() { os.Chmod(filepath.Dir(dir), 0o755); os.Chmod(dir, 0o755) })
	asNobody(t, func() {
		if _, err := os.Stat(path); err != nil {
			t.Skip("the directory for temporary files is closed to other users")
		}
		_, err := vfs.OS().Create(filepath.Join(dir, "f"))
		require.ErrorIs(t, err, os.ErrPermission, "the directory is read-only for this test")
		lock, err := vfs.OS().Lock(path)
		require.NoError(t, err)
		_, err = vfs.OS().Lock(path)
		require.ErrorIs(t, err, fault.ErrLocked)
		require.NoError(t, lock.Close())
		_, err = vfs.OS().Lock(filepath.Join(dir, "missing"))
		require.ErrorIs(t, err, os.ErrPermission)
	})
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "bytes", string(content))
}

func TestDescriptorsAreCloseOnExec(t *testing.T) {
	dir := t.TempDir()
	f, err := vfs.OS().Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	closeFile(t, f)
	lock, err := vfs.OS().Lock(filepath.Join(dir, "LOCK"))
	require.NoError(t, err)
	closeFile(t, lock)
	found := 0
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range fds {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || filepath.Dir(target) != dir {
			continue
		}
		found++
		info, err := os.ReadFile("/proc/self/fdinfo/" + entry.Name())
		require.NoError(t, err)
		require.Regexp(t, `flags:\s+0?2[0-7]{6}\n`, string(info), "O_CLOEXEC (02000000) of %s", target)
	}
	require.Equal(t, 2, found)
}

func openDescriptors(t *testing.T) int {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(fds)
}

// No operation keeps a descriptor behind, not even one that fails.
func TestNoDescriptorLeaks(t *testing.T) {
	before := openDescriptors(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS(), name, []byte("x")))
	lock, err := vfs.OS().Lock(name)
	require.NoError(t, err)
	_, err = vfs.OS().Lock(name)
	require.ErrorIs(t, err, fault.ErrLocked)
	require.NoError(t, lock.Close())
	_, err = vfs.OS().List(dir)
	require.NoError(t, err)
	_, err = vfs.OS().OpenRead(dir)
	require.Error(t, err)
	_, err = vfs.OS().Map(dir, 1)
	require.Error(t, err)
	m, err := vfs.OS().Map(name, 1)
	require.NoError(t, err)
	require.Equal(t, before, openDescriptors(t), "a mapping needs none")
	require.NoError(t, m.Close())
}

func TestDevicesAreNotFiles(t *testing.T) {
	_, err := vfs.OS().OpenRead("/dev/null")
	require.ErrorContains(t, err, "/dev/null")
	_, err = vfs.OS().Map("/dev/null", 0)
	require.ErrorContains(t, err, "/dev/null")
}

// DropCache must leave none of a synced file in the page cache, or a checkpoint
// that re-reads its files would only see what it wrote.
func TestDropCache(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := vfs.OS().Create(name)
	require.NoError(t, err)
	closeFile(t, f)
	_, err = f.WriteAt(make([]byte, 1<<20), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Positive(t, residentPages(t, name))
	require.NoError(t, f.DropCache())
	var st syscall.Statfs_t
	require.NoError(t, syscall.Statfs(name, &st))
	if st.Type == unix.TMPFS_MAGIC {
		t.Skip("the page cache is the medium of tmpfs")
	}
	require.Zero(t, residentPages(t, name))
}

func residentPages(t *testing.T, name string) int {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	st, err := f.Stat()
	require.NoError(t, err)
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(data)) }()
	resident := make([]byte, len(data)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&resident[0])))
	require.Zero(t, errno)
	count := 0
	for _, page := range resident {
		count += int(page & 1)
	}
	return count
}

func TestDatasyncDoesNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates")
	}
	f, err := vfs.OS().Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	closeFile(t, f)
	p := make([]byte, 512)
	allocs := testing.AllocsPerRun(20, func() {
		f.WriteAt(p, 0)
		f.Datasync()
	})
	require.Zero(t, allocs)
}
