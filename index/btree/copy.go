package btree

import (
	"github.com/rekindledb/rekindle/internal/epoch"
)

// own makes a latched node fit to be changed in the epoch now: one of an
// earlier epoch is replaced by a copy, which the guard then holds latched. All
// nodes that an operation changes are latched before now is read, so that they
// all belong to one epoch.
func (t *Tree) own(h *epoch.Handle, g *guard, now uint64) error {
	if t.store == nil || g.epoch() == now {
		return nil
	}
	id := g.id()
	entry, err := t.store.Entry(id)
	if err != nil {
		return err
	}
	c, err := t.copyOf(h, g.node, id, now)
	if err != nil {
		return err
	}
	old, stamp := g.entry(), g.epoch()
	g.unlatchObsolete()
	t.store.Replaced(h.Shard(), id, old, stamp, now)
	entry.Store(c.entry())
	*g = c
	return nil
}

// now is the epoch for what is about to be changed.
func (t *Tree) now() uint64 {
	if t.store == nil {
		return 0
	}
	return t.store.Epoch()
}

// copyOf returns a latched copy of a node in a block of its own.
func (t *Tree) copyOf(h *epoch.Handle, n node, id NodeID, stamp uint64) (guard, error) {
	ref, err := t.newBlock(h.Shard())
	if err != nil {
		return guard{}, err
	}
	c := t.claim(ref, t.lastVersion(ref), childWord(id, ref))
	moveWords(c.at(metaAt), n.at(metaAt), nodeWords-metaAt/8)
	c.setWord(idAt, t.name(id))
	c.setWord(epochAt, stamp)
	return c, nil
}

// materialise replaces an image by a node in memory with the same content and
// stamp, so that it can be latched. The image is read before the copy is seen
// by anyone.
func (t *Tree) materialise(h *epoch.Handle, id NodeID) error {
	g, err := t.resolve(id)
	if err != nil || !g.isImage() {
		return err
	}
	entry, err := t.store.Entry(id)
	if err != nil {
		return err
	}
	c, err := t.copyOf(h, g.node, id, g.epoch())
	if err != nil {
		return err
	}
	if !entry.CompareAndSwap(g.seen, c.entry()) {
		c.unlatchObsolete()
		t.store.FreeBlock(h.Shard(), hintOf(c.word))
		return errRestart
	}
	t.store.Replaced(h.Shard(), id, g.seen, g.epoch(), g.epoch())
	c.unlatch()
	return nil
}
