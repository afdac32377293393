package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// Refused reports whether an operation was refused for want of a permission, a
// descriptor or memory. Then its error says nothing about the file.
func Refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// Failed reports whether an operation did not do what it was for. The end of a file
// and the absence of a name are answers.
func Failed(err error) bool {
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist)
}

// Watched is a file system that remembers an error. Who takes files that cannot be
// read for damaged ones asks it in the end.
type Watched struct {
	FS
	first atomic.Pointer[error]
}

// Watch returns a file system that remembers the first error for which matters
// is true.
func Watch(fs FS, matters func(error) bool) *Watched {
	w := new(Watched)
	w.FS = Wrap(fs, func(op Op, do func(Op) error) error {
		err := do(op)
		if matters(err) {
			w.first.CompareAndSwap(nil, &err)
		}
		return err
	})
	return w
}

// Err returns that error, nil if there was none.
func (w *Watched) Err() error {
	if err := w.first.Load(); err != nil {
		return fmt.Errorf("not everything could be read: %w", *err)
	}
	return nil
}
