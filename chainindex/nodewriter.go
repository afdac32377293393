package chainindex

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// nodeWriter is the node store of a tree that goes into a file while it is
// built: a node's memory serves another one as soon as the node is complete. The
// builder finishes children before their parents, so ids, which are given in
// the order of creation, and with them the file are in post-order; only the
// root, which is created first, comes last.
type nodeWriter struct {
	readOnly
	arena   *arena.Arena
	out     io.Writer
	seed    uint64
	last    btree.NodeID
	newest  *draft
	root    *draft
	waiting []*draft // made and not written, ascending; without the root
	free    []arena.Ref
	buf     []byte
}

// draft is a node that is not written yet.
type draft struct {
	entry atomic.Uint64 // the block, set by the builder
}

func (d *draft) block() arena.Ref { return arena.Ref(d.entry.Load()) }

// NewBlock first writes what has been completed. Blocks are zeroed, so that the
// file depends on nothing but the entries.
func (w *nodeWriter) NewBlock(shard uint32) (arena.Ref, error) {
	if err := w.flush(); err != nil {
		return 0, err
	}
	ref, err := w.takeBlock(shard)
	if err == nil {
		clear(w.arena.Bytes(ref, nodeSize))
	}
	return ref, err
}

func (w *nodeWriter) takeBlock(shard uint32) (arena.Ref, error) {
	n := len(w.free)
	if n == 0 {
		return w.arena.Alloc(shard, nodeSize)
	}
	ref := w.free[n-1]
	w.free = w.free[:n-1]
	return ref, nil
}

func (w *nodeWriter) FreeBlock(_ uint32, ref arena.Ref) { w.free = append(w.free, ref) }

func (w *nodeWriter) NewID(uint32) (btree.NodeID, error) {
	if w.last+1 == 0 {
		return 0, fault.ErrMemoryLimit
	}
	w.last++
	w.newest = new(draft)
	if w.last == rootID {
		w.root = w.newest
	} else {
		w.waiting = append(w.waiting, w.newest)
	}
	return w.last, nil
}

// Entry is asked for new nodes only: the builder reads none of the others.
func (w *nodeWriter) Entry(btree.NodeID) (*atomic.Uint64, error) { return &w.newest.entry, nil }

// Image is not called: no node is an image.
func (w *nodeWriter) Image(btree.NodeID, uint64) (unsafe.Pointer, error) { return nil, errReadOnly }

// latched is set in the first word of a node that the builder is not done with.
const latched = 1 << 1

func (w *nodeWriter) isComplete(d *draft) bool {
	block := d.block()
	return block != 0 && w.arena.Word(block).Load()&latched == 0
}

// flush writes the nodes that are complete up to the first one that is not: the
// leaf that waits to be linked to the next one, usually.
func (w *nodeWriter) flush() error {
	for len(w.waiting) > 0 && w.isComplete(w.waiting[0]) {
		if err := w.write(w.waiting[0]); err != nil {
			return err
		}
		w.FreeBlock(0, w.waiting[0].block())
		w.waiting = w.waiting[1:]
	}
	return nil
}

func (w *nodeWriter) write(d *draft) error {
	w.buf = btree.AppendImage(w.buf[:0], w.arena.Pointer(d.block()))
	binary.LittleEndian.PutUint64(w.buf, nodeSum(w.seed, w.buf))
	_, err := w.out.Write(w.buf)
	return err
}

// finish writes the rest of a tree that is complete.
func (w *nodeWriter) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.write(w.root)
}

// close gives the memory back, also of a tree that was not completed.
func (w *nodeWriter) close() {
	if w.root != nil {
		w.waiting = append(w.waiting, w.root)
	}
	for _, d := range w.waiting {
		if d.block() != 0 {
			w.FreeBlock(0, d.block())
		}
	}
	for _, ref := range w.free {
		w.arena.Free(0, ref, nodeSize)
	}
}
