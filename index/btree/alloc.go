package btree

import (
	"fmt"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
)

// newNode returns a latched node without content. It belongs to the caller
// until it is linked into the tree.
func (t *Tree) newNode(shard uint32) (guard, error) {
	if t.store != nil {
		return t.newNodeByID(shard)
	}
	ref, err := t.arena.Alloc(shard, NodeSize)
	if err != nil {
		return guard{}, err
	}
	g := t.claim(ref, 0, uint64(ref))
	g.setWord(idAt, 0)
	g.setWord(epochAt, 0)
	t.count.add(shard, 0, 1)
	return g, nil
}

func (t *Tree) newNodeByID(shard uint32) (guard, error) {
	ref, err := t.newBlock(shard)
	if err != nil {
		return guard{}, err
	}
	id, err := t.store.NewID(shard)
	if err != nil {
		t.store.FreeBlock(shard, ref)
		return guard{}, err
	}
	entry, err := t.store.Entry(id)
	if err != nil {
		t.store.FreeBlock(shard, ref)
		return guard{}, err
	}
	g := t.claim(ref, t.lastVersion(ref), childWord(id, ref))
	g.setWord(idAt, t.name(id))
	g.setWord(epochAt, t.store.Epoch())
	entry.Store(uint64(ref))
	t.count.add(shard, 0, 1)
	return g, nil
}

// newBlock returns a block of the store that a hint can name.
func (t *Tree) newBlock(shard uint32) (arena.Ref, error) {
	ref, err := t.store.NewBlock(shard)
	if err == nil && ref >= maxHint {
		t.store.FreeBlock(shard, ref)
		return 0, fmt.Errorf("btree: arena is beyond the reach of address hints: %w", fault.ErrMemoryLimit)
	}
	return ref, err
}

func (t *Tree) lastVersion(ref arena.Ref) uint64 { return loadWord(t.arena.Pointer(ref)) }

// claim latches a block that no one knows. The version goes on from that of
// the node that the block was before, so that whoever still looks at that one
// notices.
func (t *Tree) claim(ref arena.Ref, before, word uint64) guard {
	n := node{t.arena.Pointer(ref)}
	version := before&^(latched|obsolete) + versionStep | latched
	atomic.StoreUint64((*uint64)(n.p), version)
	return guard{n, n.p, version, word}
}

// discard frees a node of newNode that was not linked into the tree.
func (t *Tree) discard(shard uint32, g *guard) {
	t.count.add(shard, 0, -1)
	g.unlatchObsolete()
	if t.store == nil {
		t.arena.Free(shard, arena.Ref(g.word), NodeSize)
	} else {
		t.store.Dropped(shard, g.id(), g.entry(), g.epoch(), g.epoch())
	}
}

// drop frees a latched node that was unlinked in the epoch now, once no reader
// can be in it.
func (t *Tree) drop(h *epoch.Handle, g *guard, now uint64) {
	t.count.add(h.Shard(), 0, -1)
	g.unlatchObsolete()
	if t.store == nil {
		h.Retire(arena.Ref(g.word), NodeSize)
	} else {
		t.store.Dropped(h.Shard(), g.id(), g.entry(), g.epoch(), now)
	}
}
