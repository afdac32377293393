package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Files belong to the user of the database alone, as with other servers.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

type osFS struct{}

// OS returns the file system of the operating system. Files are opened
// close-on-exec. What is neither a regular file nor a directory is refused with
// a fault.File, at once: opening a pipe does not wait for its other end.
func OS() FS { return osFS{} }

func (osFS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error)     { return openOS(name, os.O_RDWR) }
func (osFS) OpenRead(name string) (File, error) { return openOS(name, os.O_RDONLY) }
func (osFS) Remove(name string) error           { return os.Remove(name) }
func (osFS) Rename(from, to string) error       { return os.Rename(from, to) }
func (osFS) MkdirAll(name string) error         { return os.MkdirAll(name, dirPerm) }
func (osFS) SyncDir(dir string) error           { return syncDir(dir) }
func (osFS) Map(name string, size int64) (Mapping, error) {
	return mapFile(name, os.O_RDONLY, size)
}

func (osFS) List(dir string) (_ []string, err error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer closeInto(d, &err)
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (osFS) Stat(name string) (Info, error) {
	st, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	if st.IsDir() {
		return Info{Dir: true}, nil
	}
	return Info{Size: st.Size()}, nil
}

func (osFS) Lock(name string) (io.Closer, error) {
	f, err := openLock(name)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, joinErrors(err, f.Close())
	}
	return f, nil
}

// openLock opens the lock file for writing if it can. Where the directory is
// read-only an existing file serves as well: locks do not need write access.
func openLock(name string) (*os.File, error) {
	f, err := openRegular(name, os.O_RDWR|os.O_CREATE)
	if err == nil || !isReadOnly(err) {
		return f, err
	}
	f, readErr := openRegular(name, os.O_RDONLY)
	if readErr != nil {
		return nil, err
	}
	return f, nil
}

func errLocked(name string) error {
	return fmt.Errorf("lock %s: %w", name, fault.ErrLocked)
}

// osFile is an os.File with the operations that os lacks.
type osFile struct {
	*os.File
	fd fdCalls
}

func openOS(name string, flag int) (File, error) {
	f, err := openRegular(name, flag)
	if err != nil {
		return nil, err
	}
	file := &osFile{File: f}
	if err := file.fd.init(f); err != nil {
		return nil, joinErrors(err, f.Close())
	}
	return file, nil
}

// openRegular opens a regular file and refuses whatever else has the name.
func openRegular(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|openAtOnce, filePerm)
	if err != nil {
		return nil, explainOpen(name, err)
	}
	if _, err := regularSize(f); err != nil {
		return nil, joinErrors(err, f.Close())
	}
	return f, nil
}

// explainOpen gives the error of an open its kind if it is due to what has the
// name: directories cannot be opened for writing, sockets not at all, and there
// is no name below a file.
func explainOpen(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return notDirectory(filepath.Dir(name))
	}
	st, statErr := os.Stat(name)
	if statErr != nil || st.Mode().IsRegular() || errors.Is(err, fs.ErrExist) {
		return err
	}
	return notRegular(name)
}

// openDir opens a directory, to list or to sync it, and no other thing.
func openDir(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return nil, explainOpenDir(name, err)
	}
	st, err := f.Stat()
	if err == nil && !st.IsDir() {
		err = notDirectory(name)
	}
	if err != nil {
		return nil, joinErrors(err, f.Close())
	}
	return f, nil
}

// explainOpenDir is explainOpen for directories.
func explainOpenDir(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return notDirectory(filepath.Dir(name))
	}
	if st, statErr := os.Stat(name); statErr != nil || st.IsDir() {
		return err
	}
	return notDirectory(name)
}

// regularSize returns the size of f and refuses directories and devices, which
// can be opened for reading but not be read as files.
func regularSize(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !st.Mode().IsRegular() {
		return 0, notRegular(f.Name())
	}
	return st.Size(), nil
}

func (f *osFile) Size() (int64, error) { return regularSize(f.File) }
func (f *osFile) Datasync() error      { return f.fd.datasync(f.File) }
func (f *osFile) DropCache() error     { return f.fd.advise(f.File, 0, 0, dropCache) }
func (f *osFile) FillCache(offset, n int64) error {
	return f.fd.advise(f.File, offset, n, fillCache)
}
