//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile takes the flock of an open file. It belongs to the open file, not to
// the process, so a second lock in one process fails as well, and it ends when
// the last descriptor is closed by whatever means.
func lockFile(f *os.File) error {
	err := ignoringEINTR(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked(f.Name())
	}
	return pathError("flock", f.Name(), err)
}

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// openAtOnce keeps an open from waiting for the other end of a pipe, and a
// terminal from becoming that of the process. Regular files ignore it.
const openAtOnce = unix.O_NONBLOCK | unix.O_NOCTTY

// openNoLink refuses a symbolic link.
const openNoLink = unix.O_NOFOLLOW

func syncDir(dir string) (err error) {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	defer closeInto(d, &err)
	return d.Sync()
}

// ignoringEINTR repeats a system call that a signal interrupted.
func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
