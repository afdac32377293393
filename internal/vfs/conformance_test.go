package vfs_test

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// system is one implementation under the conformance suite.
type system struct {
	name string
	open func(t *testing.T) (vfs.FS, string) // file system and an empty directory in it
}

func systems() []system {
	passThrough := errorfs.Func(func(vfs.Op) error { return nil })
	onDisk := func(fs vfs.FS) func(*testing.T) (vfs.FS, string) {
		return func(t *testing.T) (vfs.FS, string) { return fs, t.TempDir() }
	}
	inMemory := func(dir string, wrap func(vfs.FS) vfs.FS) func(*testing.T) (vfs.FS, string) {
		return func(t *testing.T) (vfs.FS, string) {
			mem := vfs.NewMem()
			require.NoError(t, mem.MkdirAll(dir))
			t.Cleanup(func() { require.Zero(t, mem.Handles(), "handles left open") })
			return wrap(mem), dir
		}
	}
	plain := func(fs vfs.FS) vfs.FS { return fs }
	return []system{
		{"os", onDisk(vfs.OS())},
		{"os inside", func(t *testing.T) (vfs.FS, string) {
			dir := t.TempDir()
			return vfs.Inside(dir), dir
		}},
		{"os no map", onDisk(vfs.NoMap(vfs.OS()))},
		{"mem", inMemory("a/b", plain)},
		{"mem root", inMemory("/", plain)},
		{"mem no map", inMemory("/x", vfs.NoMap)},
		{"mem meter", inMemory("/m", func(fs vfs.FS) vfs.FS { return vfs.NewMeter(fs, "/m") })},
		{"mem log", inMemory(".", func(fs vfs.FS) vfs.FS { return vfs.WithLog(fs, func(vfs.Op) {}) })},
		{"os errorfs", onDisk(errorfs.Wrap(vfs.OS(), passThrough))},
	}
}

func TestConformance(t *testing.T) {
	cases := []struct {
		name string
		run  func(t *testing.T, fs vfs.FS, dir string)
	}{
		{"create", testCreate},
		{"open", testOpen},
		{"read at", testReadAt},
		{"write at", testWriteAt},
		{"truncate", testTruncate},
		{"read-only handle", testReadOnlyHandle},
		{"sync", testSync},
		{"use after close", testUseAfterClose},
		{"remove", testRemove},
		{"rename", testRename},
		{"open file outlives its name", testOutlivesName},
		{"directories", testDirectories},
		{"stat", testStat},
		{"map", testMap},
		{"lock", testLock},
		{"paths in errors", testPathsInErrors},
	}
	for _, s := range systems() {
		for _, c := range cases {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				fs, dir := s.open(t)
				c.run(t, fs, dir)
			})
		}
	}
}

// put makes a file with the given content and closes it.
func put(t require.TestingT, fs vfs.FS, name, content string) {
	f, err := fs.Create(name)
	require.NoError(t, err)
	write(t, f, content, 0)
	require.NoError(t, f.Close())
}

func write(t require.TestingT, f vfs.File, content string, off int64) {
	n, err := f.WriteAt([]byte(content), off)
	require.NoError(t, err)
	require.Equal(t, len(content), n)
}

func get(t require.TestingT, fs vfs.FS, name string) string {
	data, err := vfs.ReadFile(fs, name, 1<<20)
	require.NoError(t, err)
	return string(data)
}

func content(t require.TestingT, f vfs.File) string {
	size, err := f.Size()
	require.NoError(t, err)
	p := make([]byte, size)
	_, err = f.ReadAt(p, 0)
	require.NoError(t, err)
	return string(p)
}

func closeFile(t *testing.T, c io.Closer) {
	t.Cleanup(func() { require.NoError(t, c.Close()) })
}

func testCreate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	f, err := fsys.Create(name)
	require.NoError(t, err)
	closeFile(t, f)
	require.Equal(t, name, f.Name())
	write(t, f, "abc", 0)
	require.Equal(t, "abc", content(t, f))

	_, err = fsys.Create(name)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = fsys.Create(filepath.Join(dir, "missing", "f"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.Create(filepath.Join(name, "below a file"))
	require.Error(t, err)
	require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "d")))
	_, err = fsys.Create(filepath.Join(dir, "d"))
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, "abc", get(t, fsys, name))
}

func testOpen(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	for _, open := range []func(string) (vfs.File, error){fsys.Open, fsys.OpenRead} {
		_, err := open(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = open(dir)
		require.Error(t, err, "a directory is not a file")
	}
	put(t, fsys, name, "abc")
	f, err := fsys.Open(name)
	require.NoError(t, err)
	closeFile(t, f)
	write(t, f, "X", 1)
	require.Equal(t, "aXc", content(t, f))
	require.Equal(t, "aXc", get(t, fsys, name), "another handle sees it at once")
}

func testReadAt(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	put(t, fsys, name, "0123456789")
	f, err := fsys.OpenRead(name)
	require.NoError(t, err)
	closeFile(t, f)
	cases := []struct {
		off  int64
		size int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil},
		{3, 4, "3456", nil},
		{9, 1, "9", nil},
		{9, 2, "9", io.EOF},
		{10, 1, "", io.EOF},
		{1 << 40, 1, "", io.EOF},
		{10, 0, "", nil},
		{1 << 40, 0, "", nil},
	}
	for _, c := range cases {
		p := make([]byte, c.size)
		n, err := f.ReadAt(p, c.off)
		require.Equal(t, c.want, string(p[:n]), "offset %d", c.off)
		require.True(t, err == c.err, "offset %d: %v is not %v itself", c.off, err, c.err)
	}
	_, err = f.ReadAt(make([]byte, 1), -1)
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
}

func testWriteAt(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	closeFile(t, f)
	write(t, f, "tail", 10000)
	require.Equal(t, strings.Repeat("\x00", 10000)+"tail", content(t, f))
	write(t, f, "head", 0)
	write(t, f, "", 20000)
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, 10004, size, "an empty write does not extend")
	long := strings.Repeat("0123456789abcdef", 1000)
	write(t, f, long, 4090)
	require.Equal(t, "head"+strings.Repeat("\x00", 4086)+long, content(t, f))
	_, err = f.WriteAt([]byte("x"), -1)
	require.Error(t, err)
}

func testTruncate(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	closeFile(t, f)
	write(t, f, strings.Repeat("x", 9000), 0)
	for _, size := range []int64{9000, 5000, 4096, 700, 512, 3, 0} {
		require.NoError(t, f.Truncate(size))
		require.Equal(t, strings.Repeat("x", int(size)), content(t, f))
		require.NoError(t, f.Truncate(10000))
		require.Equal(t, strings.Repeat("x", int(size))+strings.Repeat("\x00", 10000-int(size)), content(t, f))
	}
	require.Error(t, f.Truncate(-1))
}

func testReadOnlyHandle(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	put(t, fsys, name, "abc")
	f, err := fsys.OpenRead(name)
	require.NoError(t, err)
	closeFile(t, f)
	_, err = f.WriteAt([]byte("x"), 0)
	require.Error(t, err)
	require.Error(t, f.Truncate(0))
	require.Equal(t, "abc", content(t, f))
}

func testSync(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	closeFile(t, f)
	write(t, f, "abc", 0)
	require.NoError(t, f.Datasync())
	require.NoError(t, f.Sync())
	require.NoError(t, f.DropCache())
	require.Equal(t, "abc", content(t, f))
	require.NoError(t, fsys.SyncDir(dir))
	require.ErrorIs(t, fsys.SyncDir(filepath.Join(dir, "missing")), fs.ErrNotExist)
}

func testUseAfterClose(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.WriteAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Size()
	require.ErrorIs(t, err, fs.ErrClosed)
	for _, call := range []func() error{f.Close, f.Sync, f.Datasync, f.DropCache, func() error { return f.Truncate(0) }} {
		require.ErrorIs(t, call(), fs.ErrClosed)
	}
}

func testRemove(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "d", "f")
	require.NoError(t, fsys.MkdirAll(filepath.Dir(name)))
	put(t, fsys, name, "abc")
	require.Error(t, fsys.Remove(filepath.Dir(name)), "the directory is not empty")
	require.NoError(t, fsys.Remove(name))
	require.ErrorIs(t, fsys.Remove(name), fs.ErrNotExist)
	require.NoError(t, fsys.Remove(filepath.Dir(name)))
	_, err := fsys.Stat(filepath.Dir(name))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func testRename(t *testing.T, fsys vfs.FS, dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, fsys, at("a"), "content of a")
	put(t, fsys, at("b"), "content of b")
	require.NoError(t, fsys.MkdirAll(at("d/sub")))

	require.NoError(t, fsys.Rename(at("a"), at("b")), "replaces")
	require.Equal(t, "content of a", get(t, fsys, at("b")))
	require.NoError(t, fsys.Rename(at("b"), at("b")), "to itself")
	require.NoError(t, fsys.Rename(at("b"), at("d/c")), "to another directory")
	require.Equal(t, "content of a", get(t, fsys, at("d/c")))

	require.ErrorIs(t, fsys.Rename(at("a"), at("x")), fs.ErrNotExist)
	require.ErrorIs(t, fsys.Rename(at("a"), at("a")), fs.ErrNotExist)
	require.ErrorIs(t, fsys.Rename(at("d/c"), at("missing/x")), fs.ErrNotExist)
	require.ErrorIs(t, fsys.Rename(at("d/c"), at("d/sub")), fs.ErrExist, "a directory is not replaced")
	require.Error(t, fsys.Rename(at("d"), at("d/sub/d")), "a directory below itself")
	require.Error(t, fsys.Rename(at("d/sub"), at("d/c")), "a directory over a file")

	require.NoError(t, fsys.Rename(at("d"), at("e")))
	require.Equal(t, "content of a", get(t, fsys, at("e/c")))
	names, err := fsys.List(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"e"}, names)
}

func testOutlivesName(t *testing.T, fsys vfs.FS, dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, fsys, at("removed"), "abc")
	put(t, fsys, at("renamed"), "abc")
	removed, err := fsys.Open(at("removed"))
	require.NoError(t, err)
	closeFile(t, removed)
	renamed, err := fsys.Open(at("renamed"))
	require.NoError(t, err)
	closeFile(t, renamed)
	mapped, err := fsys.Map(at("removed"), 3)
	require.NoError(t, err)
	closeFile(t, mapped)

	require.NoError(t, fsys.Remove(at("removed")))
	require.NoError(t, fsys.Rename(at("renamed"), at("new")))
	put(t, fsys, at("removed"), "another file")
	require.Equal(t, "abc", string(mapped.Bytes()))
	for _, f := range []vfs.File{removed, renamed} {
		write(t, f, "def", 3)
		require.NoError(t, f.Sync())
		require.Equal(t, "abcdef", content(t, f))
	}
	require.Equal(t, "abcdef", get(t, fsys, at("new")))
	require.Equal(t, "another file", get(t, fsys, at("removed")))
}

func testDirectories(t *testing.T, fsys vfs.FS, dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, fsys.MkdirAll(at("x/y/z")))
	require.NoError(t, fsys.MkdirAll(at("x/y")), "again")
	for _, name := range []string{"x/c", "x/a", "x/b"} {
		put(t, fsys, at(name), "")
	}
	names, err := fsys.List(at("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "y"}, names)
	names, err = fsys.List(at("x/y/z"))
	require.NoError(t, err)
	require.Empty(t, names)
	_, err = fsys.List(at("missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.List(at("x/a"))
	require.Error(t, err, "a file is not a directory")
	require.Error(t, fsys.MkdirAll(at("x/a")), "a file is in the way")
	require.Error(t, fsys.MkdirAll(at("x/a/below")), "a file is in the way")
}

func testStat(t *testing.T, fsys vfs.FS, dir string) {
	put(t, fsys, filepath.Join(dir, "f"), "abc")
	info, err := fsys.Stat(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.Equal(t, vfs.Info{Size: 3}, info)
	info, err = fsys.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, vfs.Info{Dir: true}, info)
	_, err = fsys.Stat(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func testMap(t *testing.T, fsys vfs.FS, dir string) {
	for _, size := range []int{0, 1, 7, 511, 4096, 70001} {
		name := filepath.Join(dir, "f")
		want := strings.Repeat("abcdefg", size/7+1)[:size]
		put(t, fsys, name, want)
		for _, other := range []int64{int64(size) - 1, int64(size) + 1, 1 << 50} {
			_, err := fsys.Map(name, other)
			require.ErrorIs(t, err, fault.ErrCorrupt)
			require.ErrorContains(t, err, fmt.Sprintf("file has %d bytes, should have %d", size, other))
		}
		m, err := fsys.Map(name, int64(size))
		require.NoError(t, err)
		require.Equal(t, want, string(m.Bytes()))
		require.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(m.Bytes())))%8, "alignment")
		require.NoError(t, fsys.Remove(name))
		require.NoError(t, m.Close())
		require.Empty(t, m.Bytes())
		require.NoError(t, m.Close(), "again")
	}
	_, err := fsys.Map(filepath.Join(dir, "missing"), 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.Map(dir, 1)
	require.Error(t, err, "a directory is not a file")
}

func testLock(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "LOCK")
	for range 3 { // each round finds the file of the one before
		lock, err := fsys.Lock(name)
		require.NoError(t, err)
		_, err = fsys.Lock(name)
		require.ErrorIs(t, err, fault.ErrLocked)
		require.ErrorContains(t, err, name)
		require.NoError(t, lock.Close())
		require.ErrorIs(t, lock.Close(), fs.ErrClosed)
	}
	require.Equal(t, "", get(t, fsys, name))

	put(t, fsys, filepath.Join(dir, "used"), "bytes of somebody")
	lock, err := fsys.Lock(filepath.Join(dir, "used"))
	require.NoError(t, err)
	require.Equal(t, "bytes of somebody", get(t, fsys, filepath.Join(dir, "used")))
	other, err := fsys.Lock(name)
	require.NoError(t, err, "locks of different files are independent")
	require.NoError(t, other.Close())
	require.NoError(t, lock.Close())

	_, err = fsys.Lock(filepath.Join(dir, "missing", "LOCK"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.Lock(dir)
	require.Error(t, err, "a directory is not a file")
}

func testPathsInErrors(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "the-missing-name")
	_, createErr := fsys.Create(filepath.Join(name, "x"))
	_, openErr := fsys.Open(name)
	_, readErr := fsys.OpenRead(name)
	_, mapErr := fsys.Map(name, 1)
	_, listErr := fsys.List(name)
	_, statErr := fsys.Stat(name)
	_, lockErr := fsys.Lock(filepath.Join(name, "x"))
	errs := []error{
		createErr, openErr, readErr, mapErr, listErr, statErr, lockErr,
		fsys.Remove(name), fsys.Rename(name, name+"2"), fsys.SyncDir(name),
	}
	f, err := fsys.Create(name)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, writeErr := f.WriteAt([]byte("x"), 0)
	_, sizeErr := f.Size()
	errs = append(errs, writeErr, sizeErr, f.Sync(), f.Datasync(), f.Truncate(0), f.Close(), f.DropCache(),
		fsys.MkdirAll(filepath.Join(name, "d")))
	for i, err := range errs {
		require.ErrorContains(t, err, "the-missing-name", "error %d", i)
	}
}
