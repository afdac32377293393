package vfs

import (
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// maxMemFile bounds the size of a file, so that a wrong offset is an error and
// not the end of the process.
const maxMemFile = 1 << 36

// memHandle counts something open in a Mem.
type memHandle struct {
	mem    *Mem
	closed atomic.Bool
}

// close ends the handle and reports whether this call did it.
func (h *memHandle) close() bool {
	first := h.closed.CompareAndSwap(false, true)
	if first {
		h.mem.handles.Add(-1)
	}
	return first
}

type memMapping struct {
	heapMapping
	memHandle
}

func (m *memMapping) Close() error {
	m.memHandle.close()
	return m.heapMapping.Close()
}

type memLock struct {
	memHandle
	node *memNode
	name string
}

func (l *memLock) Close() error {
	if !l.close() {
		return Op{Kind: OpClose, Path: l.name}.Fail(fs.ErrClosed)
	}
	l.mem.mu.Lock()
	defer l.mem.mu.Unlock()
	delete(l.mem.locks, l.node)
	return nil
}

// memFile is an open file. It holds the node, so it outlives the name.
type memFile struct {
	memHandle
	node     *memNode
	name     string
	readOnly bool
}

func (f *memFile) op(kind Kind) Op { return Op{Kind: kind, Path: f.name} }

// mutate runs a mutating operation of a file that is open for it.
func (f *memFile) mutate(op Op, apply func() error) error {
	return f.mem.mutate(op, func() error {
		switch {
		case f.closed.Load():
			return fs.ErrClosed
		case f.readOnly && (op.Kind == OpWriteAt || op.Kind == OpTruncate):
			return syscall.EBADF
		}
		return apply()
	})
}

func (f *memFile) read(op Op, apply func()) error {
	return f.mem.read(op, func() error {
		if f.closed.Load() {
			return fs.ErrClosed
		}
		apply()
		return nil
	})
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) Close() error {
	if !f.close() {
		return f.op(OpClose).Fail(fs.ErrClosed)
	}
	return nil
}

func (f *memFile) Size() (size int64, err error) {
	err = f.read(f.op(OpSize), func() { size = f.node.current.size })
	return size, err
}

func (f *memFile) ReadAt(p []byte, off int64) (n int, err error) {
	op := Op{Kind: OpReadAt, Path: f.name, Offset: off, Size: int64(len(p))}
	if off < 0 {
		return 0, op.Fail(errNegativeOffset)
	}
	err = f.read(op, func() { n = f.node.current.readAt(p, off) })
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	op := Op{Kind: OpWriteAt, Path: f.name, Offset: off, Size: int64(len(p))}
	err := f.mutate(op, func() error {
		if err := checkExtent(off, int64(len(p))); err != nil {
			return err
		}
		f.node.writeAt(f.mem.owner, p, off)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	return f.mutate(Op{Kind: OpTruncate, Path: f.name, Size: size}, func() error {
		if err := checkExtent(0, size); err != nil {
			return err
		}
		f.node.truncate(f.mem.owner, size)
		return nil
	})
}

func checkExtent(off, size int64) error {
	switch {
	case off < 0 || size < 0:
		return errNegativeOffset
	case off > maxMemFile || size > maxMemFile-off:
		return syscall.EFBIG
	}
	return nil
}

// Sync and Datasync are one: Mem has no metadata that a reader could do without.
func (f *memFile) Sync() error     { return f.sync(OpSync) }
func (f *memFile) Datasync() error { return f.sync(OpDatasync) }

func (f *memFile) sync(kind Kind) error {
	return f.mutate(f.op(kind), func() error {
		f.node.sync(f.mem.owner)
		return nil
	})
}

func (f *memFile) DropCache() error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if f.closed.Load() {
		return f.op(OpDropCache).Fail(fs.ErrClosed)
	}
	f.node.dropCache(f.mem.owner)
	return nil
}

// FillCache does nothing: all content is in memory.
func (f *memFile) FillCache(int64, int64) error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if f.closed.Load() {
		return f.op(OpFillCache).Fail(fs.ErrClosed)
	}
	return nil
}
