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

func syncDir(dir string) (err error) {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	defer closeInto(d, &err)
	return d.Sync()
}

type osMapping struct{ data []byte }

func mapFile(name string) (_ Mapping, err error) {
	f, err := openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer closeInto(f, &err) // a mapping outlives its descriptor
	size, err := regularSize(f)
	if err != nil {
		return nil, err
	}
	return mapSize(f, size)
}

func mapSize(f *os.File, size int64) (Mapping, error) {
	if size == 0 { // mmap refuses it
		return &osMapping{}, nil
	}
	if int64(int(size)) != size {
		return nil, pathError("mmap", f.Name(), syscall.EFBIG)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, pathError("mmap", f.Name(), err)
	}
	// Without this a fault reads as much around the page as the device is set up
	// to read ahead, up to megabytes. It is advice: an error has no news.
	_ = unix.Madvise(data, unix.MADV_RANDOM)
	return &osMapping{data: data}, nil
}

func (m *osMapping) Bytes() []byte { return m.data }

func (m *osMapping) Close() error {
	data := m.data
	m.data = nil
	if data == nil {
		return nil
	}
	return os.NewSyscallError("munmap", unix.Munmap(data))
}

// ignoringEINTR repeats a system call that a signal interrupted.
func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
