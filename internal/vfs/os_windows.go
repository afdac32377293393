package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks one byte far behind any content: locks are mandatory on
// Windows and must not get in the way of readers.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	place := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, place)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked(f.Name())
	}
	return pathError("LockFileEx", f.Name(), err)
}

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, windows.ERROR_WRITE_PROTECT)
}

// openAtOnce: names of pipes are apart from those of files.
const openAtOnce = 0

// openNoLink: no such flag.
const openNoLink = 0

// syncDir only checks the directory: Windows has no flush of entries, NTFS
// journals them.
func syncDir(dir string) error {
	_, err := os.Stat(dir)
	return err
}
