package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// Refused reports whether an operation was refused for want of a permission, a
// descriptor or memory. Then its error says nothing about the file.
func Refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// Refusals is a file system that remembers that an operation was refused. Who takes
// files that cannot be read for damaged ones asks it in the end.
type Refusals struct {
	FS
	first atomic.Pointer[error]
}

// WatchRefusals returns fs with a memory of refusals.
func WatchRefusals(fs FS) *Refusals {
	r := new(Refusals)
	r.FS = Wrap(fs, func(op Op, do func(Op) error) error {
		err := do(op)
		if Refused(err) {
			r.first.CompareAndSwap(nil, &err)
		}
		return err
	})
	return r
}

// Err returns the first refusal, nil if there was none.
func (r *Refusals) Err() error {
	if err := r.first.Load(); err != nil {
		return fmt.Errorf("not everything could be read: %w", *err)
	}
	return nil
}
