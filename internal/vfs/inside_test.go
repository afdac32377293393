package vfs_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// operations are all that take a name of something that exists.
func operations(fs vfs.FS) map[string]func(name string) error {
	file := func(open func(string) (vfs.File, error)) func(string) error {
		return func(name string) error {
			f, err := open(name)
			if err == nil {
				err = f.Close()
			}
			return err
		}
	}
	return map[string]func(string) error{
		"open":      file(fs.Open),
		"open read": file(fs.OpenRead),
		"map": func(name string) error {
			m, err := fs.Map(name, int64(len("secret")))
			if err == nil {
				err = m.Close()
			}
			return err
		},
		"lock": func(name string) error {
			l, err := fs.Lock(name)
			if err == nil {
				err = l.Close()
			}
			return err
		},
		"list": func(name string) error {
			_, err := fs.List(name)
			return err
		},
		"sync dir": fs.SyncDir,
	}
}

func requireFault(t *testing.T, err error, name string, args ...any) {
	t.Helper()
	var e *fault.File
	require.ErrorAs(t, err, &e, args...)
	require.Equal(t, name, e.Path, args...)
	require.ErrorIs(t, err, fault.ErrCorrupt, args...)
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Skip("this system makes no symbolic links here: ", err)
	}
}

// TestInsideRefusesLinks puts links at every place of a path: nothing that they
// lead to is read, listed, changed, made or removed.
func TestInsideRefusesLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	fs := vfs.Inside(dir)
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "log"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log", "own"), nil, 0o600))
	file, folder := filepath.Join(dir, "log", "file"), filepath.Join(dir, "folder")
	dangling, loop := filepath.Join(dir, "dangling"), filepath.Join(dir, "loop")
	symlink(t, secret, file)
	symlink(t, outside, folder)
	symlink(t, filepath.Join(outside, "made"), dangling)
	symlink(t, loop, loop)
	for what, do := range operations(fs) {
		for _, link := range []string{file, folder, dangling, loop} {
			requireFault(t, do(link), link, "%s of a link", what)
		}
		requireFault(t, do(filepath.Join(folder, "secret")), folder, "%s through a link", what)
	}
	through := filepath.Join(folder, "new")
	_, err := fs.Create(through)
	requireFault(t, err, folder)
	requireFault(t, fs.MkdirAll(through), folder)
	requireFault(t, fs.Remove(filepath.Join(folder, "secret")), folder)
	requireFault(t, fs.Rename(filepath.Join(dir, "log", "own"), through), folder)
	requireFault(t, fs.Rename(filepath.Join(folder, "secret"), filepath.Join(dir, "x")), folder)
	_, err = fs.Stat(file)
	requireFault(t, err, file)
	_, err = fs.Create(dangling)
	require.ErrorIs(t, err, os.ErrExist)

	require.NoError(t, fs.Rename(file, filepath.Join(dir, "aside")), "the link itself can be put aside")
	for _, link := range []string{filepath.Join(dir, "aside"), folder, dangling, loop} {
		require.NoError(t, fs.Remove(link))
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
	content, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(content))
}

// TestInsideBehindLink: the directory itself may be named by a link.
func TestInsideBehindLink(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	symlink(t, real, link)
	fs := vfs.Inside(link)
	require.NoError(t, fs.MkdirAll(filepath.Join(link, "log")))
	put(t, fs, filepath.Join(link, "log", "f"), "x")
	require.Equal(t, "x", get(t, vfs.OS(), filepath.Join(real, "log", "f")))
}

// TestNotFiles: what is no regular file is refused, at once, by whatever
// operation meets it.
func TestNotFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err == nil {
		defer l.Close()
	}
	require.NoError(t, makePipe(filepath.Join(dir, "pipe")))
	for _, fs := range []vfs.FS{vfs.OS(), vfs.Inside(dir)} {
		for what, do := range operations(fs) {
			for _, name := range []string{"directory", "pipe", "socket", "file"} {
				path := filepath.Join(dir, name)
				isDir := what == "list" || what == "sync dir"
				if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) || isDir == (name == "directory") && (isDir || name == "file") {
					continue
				}
				requireFault(t, do(path), path, "%s of a %s", what, name)
			}
			below := filepath.Join(dir, "file", "below")
			requireFault(t, do(below), filepath.Dir(below), "%s below a file", what)
		}
	}
}

// TestInsideAnotherDirectory: with the lock of a directory goes what stands at its
// names.
func TestInsideAnotherDirectory(t *testing.T) {
	dir := t.TempDir()
	lockName, name, outside := filepath.Join(dir, "LOCK"), filepath.Join(dir, "f"), filepath.Join(t.TempDir(), "f")
	fs := vfs.Inside(dir)
	lock, err := fs.Lock(lockName)
	require.NoError(t, err)
	put(t, fs, name, "x")
	require.Equal(t, "x", get(t, fs, name))

	require.NoError(t, os.Rename(lockName, lockName+".moved"))
	require.ErrorIs(t, fs.Remove(name), fault.ErrMissingFile)
	require.NoError(t, os.WriteFile(lockName, nil, 0o600))
	for what, do := range operations(fs) {
		require.ErrorIs(t, do(name), fault.ErrForeignFile, what)
	}
	_, err = fs.Create(filepath.Join(dir, "new"))
	require.ErrorIs(t, err, fault.ErrForeignFile)
	require.ErrorIs(t, fs.Remove(name), fault.ErrForeignFile)
	require.ErrorIs(t, fs.Rename(name, filepath.Join(dir, "to")), fault.ErrForeignFile)
	require.ErrorIs(t, fs.MkdirAll(filepath.Join(dir, "log")), fault.ErrForeignFile)
	_, err = fs.List(dir)
	require.ErrorIs(t, err, fault.ErrForeignFile)
	put(t, fs, outside, "not in the directory")

	require.NoError(t, lock.Close())
	require.Equal(t, "x", get(t, fs, name))
}
