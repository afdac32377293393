package faulttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// Try is one run of a procedure, on a disk that is not armed yet and with a
// witness that has seen nothing. It returns what is wrong, and must not end its
// goroutine.
type Try func(ctx context.Context, d *Disk, w *Witness) error

// Matrix runs a procedure with faults at many operations.
type Matrix struct {
	Base     func() *vfs.Mem // a new copy of the disk as it is before the procedure
	First    int             // the first operation to fail, from 1
	Stride   int             // then every Stride-th
	Watchdog time.Duration   // a try that takes longer hangs
	Try      Try
}

// Counts says what became of the faults.
type Counts struct {
	Tries    int
	Injected int
	Returned int // by a call
	Logged   int // and not returned
	Silent   int // of operations that may fail in silence, and repeated reads of a file that was told of
}

// Add adds other.
func (c *Counts) Add(other Counts) {
	c.Tries += other.Tries
	c.Injected += other.Injected
	c.Returned += other.Returned
	c.Logged += other.Logged
	c.Silent += other.Silent
}

func (c Counts) String() string {
	return fmt.Sprintf("%d tries, %d faults: %d returned, %d logged, %d silent", c.Tries, c.Injected, c.Returned, c.Logged, c.Silent)
}

// maxFailures of one Run are enough to see what is wrong.
const maxFailures = 4

// Run tries one kind of fault at operation after operation, until a try passes
// without one. The error says which tries failed and how.
func (m *Matrix) Run(ctx context.Context, kind Kind, forever bool) (total Counts, _ error) {
	var failures []error
	for n := m.First; len(failures) < maxFailures; n += m.Stride {
		d, w := NewDisk(m.Base(), Plan{kind, n, forever}), &Witness{}
		err := guard(m.Watchdog, func() error { return m.Try(ctx, d, w) })
		injected := d.Injected()
		counts, unreported := judge(injected, w)
		total.Add(counts)
		if err = errors.Join(err, unreported); err != nil {
			failures = append(failures, fmt.Errorf("%s\n%w\n%.3000s", d.describe(), err, w.Text()))
		}
		if errors.Is(err, errHangs) || len(injected) == 0 {
			break
		}
	}
	return total, errors.Join(failures...)
}

// Operations runs the procedure without a fault and returns how many operations
// each kind could hit, by name. Background work makes that differ a little from
// run to run.
func (m *Matrix) Operations(ctx context.Context) (map[string]int, error) {
	d, w := NewDisk(m.Base(), Plan{}), &Witness{}
	err := guard(m.Watchdog, func() error { return m.Try(ctx, d, w) })
	if err != nil {
		err = fmt.Errorf("without a fault: %w\n%.3000s", err, w.Text())
	}
	return d.met, err
}

// judge sorts the faults of a try.
func judge(injected []*Error, w *Witness) (c Counts, err error) {
	c.Tries, c.Injected = 1, len(injected)
	unreported := 0
	for _, e := range injected {
		switch {
		case w.Returned(e):
			c.Returned++
		case w.Logged(e):
			c.Logged++
		case BestEffort(e) || toldOfFile(e, injected, w):
			c.Silent++
		default:
			unreported++
			if err == nil {
				err = fmt.Errorf("unreported: %v of %v at\n%s", e, e.Op, e.Stack)
			}
		}
	}
	if unreported > 1 {
		err = fmt.Errorf("%w\nand %d others", err, unreported-1)
	}
	return c, err
}

// toldOfFile reports whether a read has failed of a file of which it is known, by
// another fault, that it cannot be read.
func toldOfFile(e *Error, injected []*Error, w *Witness) bool {
	return !e.Op.Kind.Mutates() && slices.ContainsFunc(injected, func(o *Error) bool {
		return o.Op.Path == e.Op.Path && (w.Returned(o) || w.Logged(o))
	})
}

// describe says what failed first in a try, so that it can be run again.
func (d *Disk) describe() string {
	often := "once"
	if d.plan.Forever {
		often = "for ever"
	}
	text := fmt.Sprintf("fault %q, %s, at operation %d", d.plan.Kind.Name, often, d.plan.N)
	if injected := d.Injected(); len(injected) > 0 {
		text += fmt.Sprintf(" (%v), %d in all", injected[0].Op, len(injected))
	}
	return text
}

var errHangs = errors.New("hangs")

// guard runs f in a goroutine of its own, waits for it no longer than limit, and
// makes an error of its panic.
func guard(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("panic: %v\n%s", p, stacks(false))
			}
		}()
		done <- f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: %s", errHangs, stacks(true))
	}
}

func stacks(all bool) []byte {
	b := make([]byte, 64<<10)
	if all {
		b = make([]byte, 4<<20)
	}
	return b[:runtime.Stack(b, all)]
}
