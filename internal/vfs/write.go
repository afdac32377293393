package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// tempSuffix is added to a name to get that of its temporary file.
const tempSuffix = ".tmp"

// WriteFileAtomic gives the file at path the content data, durably: after a
// crash it has either its old content (or does not exist) or the new one. A
// temporary file left by a crash is replaced. Two calls with one path must not
// overlap. After an error the old content is there still, unless it was the
// sync of the directory that failed; then it may be either.
func WriteFileAtomic(fs FS, path string, data []byte) error {
	temp := path + tempSuffix
	if err := writeTemp(fs, temp, data); err != nil {
		return err
	}
	if err := fs.Rename(temp, path); err != nil {
		return joinErrors(err, removeIfExists(fs, temp))
	}
	return fs.SyncDir(filepath.Dir(path))
}

func writeTemp(fs FS, temp string, data []byte) error {
	if err := removeIfExists(fs, temp); err != nil {
		return err
	}
	if err := WriteFile(fs, temp, data); err != nil {
		return joinErrors(err, removeIfExists(fs, temp))
	}
	return nil
}

// WriteFile makes a new file with the content data, synced. Its name is durable
// once the directory is synced; after an error a part of it may be there.
func WriteFile(fs FS, path string, data []byte) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	return writeSynced(f, data)
}

// writeSynced writes, syncs and closes a new file.
func writeSynced(f File, data []byte) (err error) {
	defer closeInto(f, &err)
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Sync()
}

func removeIfExists(fsys FS, name string) error {
	if err := fsys.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirDurable makes a directory and its missing parents, each of them durable
// before there is anything in it. If it exists it is left alone. If only a parent
// does, an earlier call may have made that one and failed, or been killed, before
// it was durable; so that one is made durable too.
func MkdirDurable(fsys FS, dir string) error {
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return mkdirDurable(fsys, dir)
}

func mkdirDurable(fsys FS, dir string) error {
	parent := filepath.Dir(dir)
	_, err := fsys.Stat(dir)
	switch {
	case err == nil:
		return syncOwnDir(fsys, parent)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent != dir {
		if err := mkdirDurable(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	return fsys.SyncDir(parent)
}

// syncOwnDir syncs a directory in which this process may have made something. One
// that it has no access to is not among those.
func syncOwnDir(fsys FS, dir string) error {
	if err := fsys.SyncDir(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// ReadFile returns the content of a file of at most limit bytes. A larger one
// gives EFBIG before anything is allocated.
func ReadFile(fs FS, name string, limit int64) (_ []byte, err error) {
	f, err := fs.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer closeInto(f, &err)
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, pathError("read", name, syscall.EFBIG)
	}
	return readAll(f, size)
}
