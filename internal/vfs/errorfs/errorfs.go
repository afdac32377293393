// Package errorfs makes a file system fail on purpose.
//
// A test says when (Match), with what (the error, see Short and Late) and lets
// Wrap do the rest:
//
//	full := errorfs.If(
//		errorfs.All(errorfs.Kind(vfs.OpWriteAt), errorfs.PathGlob("*.log"), errorfs.FromNth(3)),
//		errorfs.Short(512, syscall.ENOSPC))
//	counted := errorfs.Count(full)
//	fs := errorfs.Wrap(mem, counted)
//
// A test that injects must also see that the error came out: compare what the
// code under test reported with counted.Injected.
//
// The failed fsync that loses data takes the help of vfs.Mem:
//
//	errorfs.Then(errorfs.If(errorfs.Kind(vfs.OpDatasync), syscall.EIO),
//		func(op vfs.Op) error { return mem.DropUnsynced(op.Path) })
package errorfs

import (
	"errors"
	"fmt"
	"io"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// ErrInjected is in the chain of every injected error, beside its cause.
var ErrInjected = errors.New("injected error")

// Injector decides before an operation whether it fails. A nil error lets it
// go. It may be called by several goroutines at once.
type Injector interface {
	MaybeError(op vfs.Op) error
}

// Func is a function as an Injector.
type Func func(op vfs.Op) error

// MaybeError implements Injector.
func (f Func) MaybeError(op vfs.Op) error { return f(op) }

// Wrap returns fs with the errors of inj. They come out with operation and
// path, and errors.Is finds both ErrInjected and what inj returned. A failed
// operation does nothing, unless the error is one of Short or Late; but a failed
// close closes, as it does on real systems.
func Wrap(fs vfs.FS, inj Injector) vfs.FS {
	return vfs.Wrap(fs, func(op vfs.Op, do func(vfs.Op) error) error {
		injected := inj.MaybeError(op)
		if injected == nil {
			return do(op)
		}
		return Fail(op, do, injected)
	})
}

// Fail is the part of a vfs.Hook for an operation that shall fail with injected:
// it does what there is to be done of it, and returns the error. That is not
// the injected one if what it does fails by itself.
func Fail(op vfs.Op, do func(vfs.Op) error, injected error) error {
	if err := partial(injected, op, do); err != nil && err != io.EOF {
		return err
	}
	return op.Fail(fmt.Errorf("%w: %w", ErrInjected, injected))
}

// partial runs as much of the operation as the injected error leaves of it.
func partial(injected error, op vfs.Op, do func(vfs.Op) error) error {
	var late *lateError
	var short *shortError
	switch {
	case op.Kind == vfs.OpClose || errors.As(injected, &late):
		return do(op)
	case errors.As(injected, &short) && (op.Kind == vfs.OpWriteAt || op.Kind == vfs.OpReadAt):
		op.Size = min(short.bytes, max(op.Size-1, 0))
		return do(op)
	}
	return nil
}

// Late is an error after the operation has taken full effect, as when a reply
// is lost: the caller must not conclude that nothing happened.
func Late(err error) error { return &lateError{err} }

type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// Short is an error after the first bytes of a read or a write, at least one
// byte less than was asked for, and before anything of another operation.
func Short(bytes int64, err error) error { return &shortError{err, bytes} }

type shortError struct {
	error
	bytes int64
}

func (e *shortError) Unwrap() error { return e.error }
