package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/fault"
)

// insideFS is the file system of the operating system, without symbolic links
// below a directory.
type insideFS struct {
	osFS
	dir   string
	known *sync.Map // directories below dir that are none: looked at once
	held  *atomic.Pointer[heldLock]
}

// heldLock is the lock of the directory.
type heldLock struct {
	name string
	file os.FileInfo
}

// Inside is OS for one who does not trust the content of a directory: below it
// a symbolic link is refused with a fault.File wherever it stands in a path, so
// no name below the directory leads out of it. Only removing and renaming work
// on a link itself. The directory may be reached through links: its name is the
// caller's. Links that somebody makes after the first look at a directory, or between
// the check and the operation, are not seen.
//
// While a lock in the directory is held, names below it are refused with a fault.File
// once that lock file is not there any more: then the directory was moved, removed
// or replaced, and what has those names now may be somebody else's.
func Inside(dir string) FS {
	return insideFS{dir: filepath.Clean(dir), known: new(sync.Map), held: new(atomic.Pointer[heldLock])}
}

// check refuses a path that leads through a link below the directory, or to what has
// taken the directory's place.
func (f insideFS) check(name string) error {
	below, ok := f.below(name)
	if !ok {
		return nil
	}
	if err := f.checkPlace(); err != nil || below == "." {
		return err
	}
	at := f.dir
	for elem := range strings.SplitSeq(below, string(filepath.Separator)) {
		at = filepath.Join(at, elem)
		if _, ok := f.known.Load(at); ok {
			continue
		}
		st, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the operation will say so
		}
		if err != nil {
			return explainOpen(name, err)
		}
		if st.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			return &fault.File{Kind: fault.ErrCorrupt, Path: at, Reason: "a link, which a database does not contain"}
		}
		if st.IsDir() {
			f.known.Store(at, nil)
		}
	}
	return nil
}

// below returns name relative to the directory; it is not ok if the name lies
// elsewhere, and so is the caller's affair.
func (f insideFS) below(name string) (_ string, ok bool) {
	below, err := filepath.Rel(f.dir, name)
	return below, err == nil && filepath.IsLocal(below)
}

// checkPlace makes sure that the directory is the one in which the lock is held.
func (f insideFS) checkPlace() error {
	held := f.held.Load()
	if held == nil {
		return nil
	}
	switch now, err := os.Lstat(held.name); {
	case errors.Is(err, fs.ErrNotExist):
		return &fault.File{Kind: fault.ErrMissingFile, Path: held.name, Reason: "the lock that is held is gone: the database was moved or removed while it was open"}
	case err != nil:
		return explainOpen(held.name, err)
	case !os.SameFile(now, held.file):
		return &fault.File{Kind: fault.ErrForeignFile, Path: held.name, Reason: "not the lock that is held: the database was replaced while it was open"}
	}
	return nil
}

// checkParent is check for an operation on the last name of a path itself.
func (f insideFS) checkParent(name string) error { return f.check(filepath.Dir(name)) }

func (f insideFS) Create(name string) (File, error) {
	if err := f.checkParent(name); err != nil {
		return nil, err
	}
	return f.osFS.Create(name)
}

func (f insideFS) Open(name string) (File, error) {
	return openInside(f, name, os.O_RDWR, openOS)
}

func (f insideFS) OpenRead(name string) (File, error) {
	return openInside(f, name, os.O_RDONLY, openOS)
}

func (f insideFS) Map(name string, size int64) (Mapping, error) {
	return openInside(f, name, os.O_RDONLY, func(name string, flag int) (Mapping, error) {
		return mapFile(name, flag, size)
	})
}

// openInside opens a file, so that the system refuses a link that has its name
// where it can: that saves a look at the name. When it fails the look tells why.
func openInside[T any](f insideFS, name string, flag int, open func(string, int) (T, error)) (T, error) {
	var none T
	check := f.check
	if below, ok := f.below(name); ok && below != "." && openNoLink != 0 {
		check, flag = f.checkParent, flag|openNoLink
	}
	if err := check(name); err != nil {
		return none, err
	}
	opened, err := open(name, flag)
	if err == nil {
		return opened, nil
	}
	if err := f.check(name); err != nil {
		return none, err
	}
	return none, err
}

func (f insideFS) Remove(name string) error {
	if err := f.checkParent(name); err != nil {
		return err
	}
	f.known.Delete(filepath.Clean(name))
	return f.osFS.Remove(name)
}

func (f insideFS) Rename(from, to string) error {
	if err := errors.Join(f.checkParent(from), f.checkParent(to)); err != nil {
		return err
	}
	f.known.Delete(filepath.Clean(from))
	return f.osFS.Rename(from, to)
}

func (f insideFS) MkdirAll(name string) error {
	if err := f.check(name); err != nil {
		return err
	}
	return f.osFS.MkdirAll(name)
}

func (f insideFS) List(dir string) ([]string, error) {
	if err := f.check(dir); err != nil {
		return nil, err
	}
	return f.osFS.List(dir)
}

func (f insideFS) Stat(name string) (Info, error) {
	if err := f.check(name); err != nil {
		return Info{}, err
	}
	return f.osFS.Stat(name)
}

func (f insideFS) SyncDir(dir string) error {
	if err := f.check(dir); err != nil {
		return err
	}
	return f.osFS.SyncDir(dir)
}

func (f insideFS) Lock(name string) (io.Closer, error) {
	if err := f.check(name); err != nil {
		return nil, err
	}
	lock, err := f.osFS.Lock(name)
	if err != nil || filepath.Dir(name) != f.dir {
		return lock, err
	}
	file, err := os.Lstat(name)
	if err != nil {
		return nil, joinErrors(err, lock.Close())
	}
	f.held.Store(&heldLock{name, file})
	return insideLock{lock, f.held}, nil
}

// insideLock is a lock on which names below a directory depend.
type insideLock struct {
	io.Closer
	held *atomic.Pointer[heldLock]
}

func (l insideLock) Close() error {
	l.held.Store(nil)
	return l.Closer.Close()
}
