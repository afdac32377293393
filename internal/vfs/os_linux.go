package vfs

import (
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// fdCalls makes system calls on a file's descriptor. The descriptor is kept
// from being closed and reused meanwhile. The closures are made once and their
// result goes through a field, so that a flush allocates nothing; the mutex
// guards that field, and the kernel orders flushes of one file anyway.
type fdCalls struct {
	raw syscall.RawConn

	mu        sync.Mutex
	err       error
	fdatasync func(fd uintptr)
}

func (c *fdCalls) init(f *os.File) (err error) {
	c.raw, err = f.SyscallConn()
	c.fdatasync = func(fd uintptr) { c.err = ignoringEINTR(func() error { return unix.Fdatasync(int(fd)) }) }
	return err
}

func (c *fdCalls) datasync(f *os.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = nil
	if err := c.raw.Control(c.fdatasync); err != nil {
		c.err = fs.ErrClosed // the only reason for Control not to call
	}
	return pathError("fdatasync", f.Name(), c.err)
}

// What advise can be told.
const (
	dropCache = unix.FADV_DONTNEED
	fillCache = unix.FADV_WILLNEED
)

// advise gives advice about n bytes at offset, 0 bytes being all.
func (c *fdCalls) advise(f *os.File, offset, n int64, advice int) error {
	var err error
	advise := func(fd uintptr) { err = unix.Fadvise(int(fd), offset, n, advice) }
	if c.raw.Control(advise) != nil {
		err = fs.ErrClosed
	}
	return pathError("fadvise", f.Name(), err)
}
