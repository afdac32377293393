package faulttest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// Plan says which operations fail.
type Plan struct {
	Kind    Kind
	N       int  // the n-th operation that can fail in this way, from 1; 0: none
	Forever bool // and all behind it
}

// Disk is a file system in memory that follows a plan while it is armed.
type Disk struct {
	vfs.FS
	Mem *vfs.Mem

	plan  Plan
	armed atomic.Bool
	seen  atomic.Int64

	mu       sync.Mutex
	met      map[string]int // by kind of fault: the operations that it could hit
	begun    int
	injected []*Error
	onFault  func()
}

// NewDisk returns mem with a plan. It is not armed.
func NewDisk(mem *vfs.Mem, plan Plan) *Disk {
	d := &Disk{Mem: mem, plan: plan, met: map[string]int{}}
	d.FS = vfs.Wrap(mem, d.hook)
	return d
}

// OnFault sets a function that is called with the first fault, after its
// effect but for what a late one still does.
func (d *Disk) OnFault(f func()) { d.onFault = f }

// Arm lets operations fail from now on.
func (d *Disk) Arm() { d.armed.Store(true) }

// Disarm ends that.
func (d *Disk) Disarm() { d.armed.Store(false) }

func (d *Disk) hook(op vfs.Op, do func(vfs.Op) error) error {
	if !d.due(op) {
		return do(op)
	}
	e := d.begin(op)
	harmed := d.plan.Kind.harm(d.Mem, op)
	if e.Seq == 1 && d.onFault != nil {
		d.onFault()
	}
	err := errors.Join(harmed, errorfs.Fail(op, do, d.plan.Kind.Err(op, e)))
	if !errors.Is(err, e) { // it has failed by itself
		d.forget(e)
	}
	return err
}

// due reports whether an operation is to fail.
func (d *Disk) due(op vfs.Op) bool {
	if !d.armed.Load() {
		return false
	}
	if d.plan.N == 0 {
		d.count(op)
		return false
	}
	if !d.plan.Kind.Fails(op) {
		return false
	}
	i := int(d.seen.Add(1))
	return i == d.plan.N || i > d.plan.N && d.plan.Forever
}

// count notes which kinds of faults could hit an operation.
func (d *Disk) count(op vfs.Op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range Kinds() {
		if k.Fails(op) {
			d.met[k.Name]++
		}
	}
}

func (d *Disk) begin(op vfs.Op) *Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun++
	e := &Error{Op: op, Seq: d.begun, Cause: d.plan.Kind.Cause, Stack: string(stacks(false))}
	d.injected = append(d.injected, e)
	return e
}

func (d *Disk) forget(e *Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.injected = slices.DeleteFunc(d.injected, func(o *Error) bool { return o == e })
}

// Injected returns the errors so far.
func (d *Disk) Injected() []*Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.injected)
}

// Cut is what a power cut leaves.
func (d *Disk) Cut(mode vfs.CrashMode) *vfs.Mem {
	return d.Mem.CrashClone(rand.New(rand.NewPCG(uint64(d.plan.N), uint64(mode))), mode)
}
