//go:build (darwin || dragonfly || freebsd || linux || netbsd || openbsd) && !nommap

package vfs

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// MapsFiles says whether the file system of the operating system maps files, or
// reads them instead.
const MapsFiles = true

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
