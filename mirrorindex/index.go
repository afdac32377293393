package mirrorindex

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/chainindex"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Index is a chain for checkpoints and a tree for reading. It is safe for
// concurrent use.
type Index struct {
	spec   index.Spec
	chain  *chainindex.Index
	mirror atomic.Pointer[btree.Tree] // nil until it is complete

	progress   progress
	stop       context.CancelFunc // ends the building of the mirror
	background sync.WaitGroup
}

var (
	_ index.Index        = (*Index)(nil)
	_ index.BatchLooker  = (*Index)(nil)
	_ index.Checkpointer = (*Index)(nil)
)

// Insert goes to the chain, which passes it on to the mirror.
func (x *Index) Insert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	return x.chain.Insert(h, key, row, unique)
}

// Remove goes to the chain, which passes it on to the mirror.
func (x *Index) Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	return x.chain.Remove(h, key, row, dead)
}

// Lookup reads the mirror, or the chain while there is none.
func (x *Index) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	if m := x.mirror.Load(); m != nil {
		return m.Lookup(h, key, dst)
	}
	return x.chain.Lookup(h, key, dst)
}

// LookupBatch is Lookup for many keys, in less time.
func (x *Index) LookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) ([]rowid.ID, []int, error) {
	if m := x.mirror.Load(); m != nil {
		return m.LookupBatch(h, keys, dst, ends)
	}
	return x.chain.LookupBatch(h, keys, dst, ends)
}

// Scan reads the mirror, or the chain while there is none. A scan may begin in
// the one and go on in the other.
func (x *Index) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if m := x.mirror.Load(); m != nil {
		return m.Scan(h, r, c, b)
	}
	return x.chain.Scan(h, r, c, b)
}

// Stats counts the entries of the mirror, once it is there, and the memory of
// both.
func (x *Index) Stats() index.Stats {
	s := x.chain.Stats()
	if m := x.mirror.Load(); m != nil {
		t := m.Stats()
		s.Entries, s.Bytes = t.Entries, s.Bytes+t.Bytes
	}
	return s
}

// BeginCheckpoint draws the line in the chain.
func (x *Index) BeginCheckpoint(ctx context.Context, n uint64) (index.Capture, error) {
	return x.chain.BeginCheckpoint(ctx, n)
}

// Close ends the building of the mirror. Memory and mappings are released when
// no pin that exists now is left.
func (x *Index) Close() error {
	if x.stop != nil {
		x.stop()
	}
	x.background.Wait()
	err := x.chain.Close()
	if m := x.mirror.Load(); m != nil {
		x.release(m)
	}
	return err
}

// release closes a tree that operations which are pinned now may still use.
func (x *Index) release(t *btree.Tree) {
	x.spec.Domain.Defer(func() {
		if err := t.Close(); err != nil {
			x.spec.Logger.Warn("mirror of an index was not released", "index", x.spec.Name, "error", err)
		}
	})
}

// newIndex returns an index in use from now on, with a mirror that has all
// entries of the chain.
func newIndex(spec index.Spec, chain *chainindex.Index, mirror *btree.Tree) *Index {
	x := &Index{spec: spec, chain: chain}
	chain.Mirror(mirror)
	x.mirror.Store(mirror)
	return x
}
