//go:build (darwin || dragonfly || freebsd || linux || netbsd || openbsd) && !nommap

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// MapsFiles says whether the file system of the operating system maps files, or
// reads them instead.
const MapsFiles = true

type osMapping struct{ data []byte }

// mapFile does without an os.File: an Open maps every file of a checkpoint, and that
// would be made known to the runtime's poller.
func mapFile(name string, flag int, size int64) (Mapping, error) {
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Open(name, flag|openAtOnce|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, explainOpen(name, pathError("open", name, err))
	}
	defer func() { _ = unix.Close(fd) }() // a mapping outlives its descriptor; nothing was written
	return mapDescriptor(name, fd, size)
}

func mapDescriptor(name string, fd int, size int64) (Mapping, error) {
	var st unix.Stat_t
	if err := ignoringEINTR(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, pathError("fstat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, notRegular(name)
	}
	if err := checkSize(name, st.Size, size); err != nil {
		return nil, err
	}
	if size == 0 { // mmap refuses it
		return &osMapping{}, nil
	}
	data, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, pathError("mmap", name, err)
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
