package iacow

import (
	"context"
	"runtime"
	"slices"
	"unsafe"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// capture is a checkpoint under way: the tree as it was at the end of an epoch.
type capture struct {
	draft
	x      *Index
	ending uint64   // the epoch
	list   []uint32 // pages to look at
	image  *image   // what Write has made
	done   bool
}

var _ index.Capture = (*capture)(nil)

// BeginCheckpoint ends the epoch and waits for the operations that may still
// belong to it. If ctx ends before that, nothing is lost: what the epoch changed
// is looked at by the next checkpoint.
func (x *Index) BeginCheckpoint(ctx context.Context, n uint64) (index.Capture, error) {
	s := x.store
	if invariants.Enabled && x.capturing {
		invariants.Fail("iacow: two captures of index %s are open", x.spec.Name)
	}
	if x.lapsed { // operations of an earlier try may still add to its list
		if err := x.spec.Domain.Barrier(ctx); err != nil {
			return nil, err
		}
		x.lapsed = false
		s.purge(s.epoch.Load() - 1)
	}
	ending := s.epoch.Load()
	s.closing.Store(ending)
	s.epoch.Store(ending + 1)
	if err := x.spec.Domain.Barrier(ctx); err != nil {
		s.stopRetaining(ending)
		x.lapsed = true
		return nil, err
	}
	s.purge(ending - 1)
	if err := x.retire(); err != nil {
		s.stopRetaining(ending)
		return nil, err
	}
	x.capturing = true
	return x.newCapture(n, ending), nil
}

func (x *Index) newCapture(n, ending uint64) *capture {
	t := &x.store.table
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &capture{x: x, ending: ending, draft: newDraft(&x.spec, n, x.salt(), t.last, t.next)}
	c.footer.epoch, c.footer.root = ending, uint64(x.tree.Root())
	return c
}

// Write writes what changed since the last published checkpoint, and what must
// be moved so that old files can go. If nothing did, it writes no file.
func (c *capture) Write(ctx context.Context, create func(ext string) (vfs.File, error)) (_ []index.FileInfo, err error) {
	c.create = create
	err = c.harvest(ctx)
	c.x.store.stopRetaining(c.ending)
	if err == nil {
		err = c.compact(ctx)
	}
	if err == nil {
		c.image, err = c.finish(ctx)
	}
	if err != nil {
		return nil, c.abort(err)
	}
	return c.image.infos(), nil
}

// harvest writes the nodes that changed. Copies that were replaced meanwhile come
// first, because they hold memory.
func (c *capture) harvest(ctx context.Context) error {
	c.list = c.x.store.takeDirty()
	slices.Sort(c.list)
	for _, number := range c.list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.harvestRetained(); err != nil {
			return err
		}
		if err := c.harvestPage(number); err != nil {
			return err
		}
	}
	return c.harvestRetained()
}

// harvestRetained writes the old copies that were handed over, and frees them
// even if that fails.
func (c *capture) harvestRetained() (err error) {
	c.x.store.takeRetained(c.ending, func(id btree.NodeID, ref arena.Ref) {
		if err == nil {
			err = c.harvestCopy(id, ref)
		}
	})
	return err
}

func (c *capture) harvestCopy(id btree.NodeID, ref arena.Ref) error {
	g, i := c.x.store.at(id)
	if g.has(capturedBits, i) {
		return nil
	}
	block := c.x.store.block(ref)
	if c.wants(block) {
		return c.keep(g, id, btree.AppendImage(c.img[:0], block))
	}
	// A node that was dropped since. What it was is in the last checkpoint, or is
	// another copy in the list, or it was not there at all.
	_, err := c.shadow(uint32(id) >> pageShift)
	g.set(lateBits, i)
	return err
}

// harvestPage writes the nodes of a page of the table that may have changed.
func (c *capture) harvestPage(number uint32) error {
	g, _ := c.x.store.page(number)
	if _, err := c.shadow(number); err != nil {
		return err
	}
	for i := range pageIDs {
		if !g.has(dirtyBits, i) || g.has(capturedBits, i) {
			continue
		}
		if err := c.harvestNode(g, btree.NodeID(number<<pageShift|uint32(i))); err != nil {
			return err
		}
	}
	return nil
}

// harvestNode writes a node if it changed and the table still has what it was at
// the end of the epoch. What the table lacks is on the list of retained copies
// by now, or was not there at the end of the epoch, or was not changed.
func (c *capture) harvestNode(g page, id btree.NodeID) error {
	word := g.entry(int(id % pageIDs))
	for {
		e := entry(word.Load())
		switch {
		case e == 0:
			return c.harvestFree(g, id)
		case e.inFile():
			return nil
		}
		block := c.x.store.block(arena.Ref(e))
		if btree.HeaderOf(block).ID == id && !c.wants(block) {
			return nil
		}
		if !btree.CopyBlock(&c.node, block) || btree.HeaderOf(c.node.Pointer()).ID != id {
			runtime.Gosched() // the block is not the node's any more, as the table is about to say
			continue
		}
		if !c.wants(c.node.Pointer()) {
			return nil
		}
		return c.keep(g, id, btree.AppendImage(c.img[:0], c.node.Pointer()))
	}
}

// wants reports whether a content has changed since the last checkpoint, and not
// since the end of the epoch. Contents that it wants stay in their blocks until
// they are captured, so it may be asked before the block is copied.
func (c *capture) wants(block unsafe.Pointer) bool {
	epoch := btree.HeaderOf(block).Epoch
	return epoch <= c.ending && epoch > c.x.store.published.Load()
}

// harvestFree records that an id has no node, if that was so at the end of the
// epoch. An id that is neither gone nor free is being handed out now.
func (c *capture) harvestFree(g page, id btree.NodeID) error {
	i := int(id % pageIDs)
	if g.has(goneBits, i) && !g.has(lateBits, i) && !c.x.store.isLate(id) {
		return c.set(id, 0)
	}
	return nil
}

// keep writes the content of a node at the end of the epoch.
func (c *capture) keep(g page, id btree.NodeID, img []byte) error {
	c.img = img
	if err := c.put(id, img); err != nil {
		return err
	}
	g.set(capturedBits, int(id%pageIDs))
	return nil
}

// Published makes the checkpoint the one that later ones build on.
func (c *capture) Published() {
	c.end()
	c.x.adopt(c)
}

// Abandon forgets the checkpoint. All that it looked at is still marked as
// changed.
func (c *capture) Abandon() {
	c.end()
	if c.image != nil && c.image != c.base {
		if err := c.image.newest().close(); err != nil {
			c.x.spec.Logger.Warn("node file of an abandoned checkpoint could not be unmapped", "index", c.x.spec.Name, "error", err)
		}
	}
	for _, number := range c.list {
		if g, _ := c.x.store.page(number); g.any(dirtyBits) {
			c.x.store.queue(g, number)
		}
	}
}

// end lets operations go on without regard to the capture.
func (c *capture) end() {
	s := c.x.store
	if invariants.Enabled && c.done {
		invariants.Fail("iacow: a capture of index %s ends twice", c.x.spec.Name)
	}
	c.done = true
	s.stopRetaining(c.ending)
	for number := range c.shadows {
		if g, ok := s.page(number); ok {
			g.clearAll(capturedBits)
			g.clearAll(lateBits)
		}
	}
	c.x.capturing = false
}
