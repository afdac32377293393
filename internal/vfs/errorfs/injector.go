package errorfs

import (
	"errors"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// If returns an Injector that fails the operations that match with err.
func If(match Match, err error) Injector {
	return Func(func(op vfs.Op) error {
		if match(op) {
			return err
		}
		return nil
	})
}

// First returns an Injector that takes the first error of its parts. Parts
// behind it do not see the operation.
func First(parts ...Injector) Injector {
	return Func(func(op vfs.Op) error {
		for _, part := range parts {
			if err := part.MaybeError(op); err != nil {
				return err
			}
		}
		return nil
	})
}

// Then returns inj with a side effect on each operation that it fails. An error
// of the effect is joined to the injected one.
func Then(inj Injector, effect func(op vfs.Op) error) Injector {
	return Func(func(op vfs.Op) error {
		err := inj.MaybeError(op)
		if err == nil {
			return nil
		}
		return errors.Join(err, effect(op))
	})
}

// Counter counts what passes an Injector.
type Counter struct {
	inj      Injector
	seen     atomic.Int64
	injected atomic.Int64
}

// Count returns inj with a count.
func Count(inj Injector) *Counter { return &Counter{inj: inj} }

// MaybeError implements Injector.
func (c *Counter) MaybeError(op vfs.Op) error {
	c.seen.Add(1)
	err := c.inj.MaybeError(op)
	if err != nil {
		c.injected.Add(1)
	}
	return err
}

// Seen returns the number of operations so far.
func (c *Counter) Seen() int { return int(c.seen.Load()) }

// Injected returns the number of errors so far.
func (c *Counter) Injected() int { return int(c.injected.Load()) }

// Switch lets a test turn an Injector on and off. While off, it does not see
// operations.
type Switch struct {
	inj Injector
	on  atomic.Bool
}

// Toggle returns inj behind a switch that is off.
func Toggle(inj Injector) *Switch { return &Switch{inj: inj} }

// On lets errors through from now on.
func (s *Switch) On() { s.on.Store(true) }

// Off ends that.
func (s *Switch) Off() { s.on.Store(false) }

// MaybeError implements Injector.
func (s *Switch) MaybeError(op vfs.Op) error {
	if !s.on.Load() {
		return nil
	}
	return s.inj.MaybeError(op)
}
