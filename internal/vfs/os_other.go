//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package vfs

import (
	"errors"
	"io/fs"
	"os"
)

func lockFile(f *os.File) error {
	return pathError("lock", f.Name(), errors.ErrUnsupported)
}

func isReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }

// openAtOnce: nothing is known to wait here.
const openAtOnce = 0

// openNoLink: no flag is known.
const openNoLink = 0

func syncDir(dir string) (err error) {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	defer closeInto(d, &err)
	return d.Sync()
}
