package iacow

import (
	"errors"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
)

// adopt makes a published capture the checkpoint that the next one builds on.
func (x *Index) adopt(c *capture) {
	s := x.store
	if c.image != c.base {
		s.files[c.image.own].Store(c.image.newest())
		s.table.mu.Lock()
		s.last = c.image
		s.table.mu.Unlock()
		x.retired = append(x.retired, c.leftBehind()...)
	}
	s.published.Store(c.ending)
	for number, sh := range c.shadows {
		if g, ok := s.page(number); ok {
			s.settle(g, number, &sh.words, c.ending)
		}
	}
}

// leftBehind lists the files of the base that the new checkpoint does not refer
// to.
func (c *capture) leftBehind() (places []int) {
	if c.base == nil {
		return nil
	}
	for place, f := range c.base.files {
		if f != nil && c.image.files[place] != f {
			places = append(places, place)
		}
	}
	return places
}

// retire unmaps the files that were left behind. Since then all entries that
// referred to them have been changed, and the readers of that time have gone.
func (x *Index) retire() error {
	var errs []error
	for _, place := range x.retired {
		errs = append(errs, x.store.files[place].Swap(nil).close())
	}
	x.retired = x.retired[:0]
	return errors.Join(errs...)
}

// settle compares a page in memory with what has been published of it at the
// end of an epoch. Nodes that are still in files are where the new checkpoint
// has them, ids that it does not have can be handed out, and what does not
// differ from it is no longer dirty.
func (s *store) settle(g page, number uint32, words *pageWords, ended uint64) {
	for i, e := range words {
		word := g.entry(i)
		if old := entry(word.Load()); e != 0 && old != e && old.inFile() {
			word.CompareAndSwap(uint64(old), uint64(e))
		}
		if g.has(dirtyBits, i) {
			g.clear(dirtyBits, i)
			if id := btree.NodeID(number<<pageShift | uint32(i)); !s.isClean(g, id, e, ended) {
				g.set(dirtyBits, i)
			}
		}
		if e == 0 && g.has(goneBits, i) && word.Load() == 0 {
			g.clear(goneBits, i)
			s.table.mu.Lock()
			s.release(g, number, i)
			s.table.mu.Unlock()
		}
	}
	if g.any(dirtyBits) {
		s.queue(g, number)
	}
}

// isClean reports whether a node certainly is what has been published of it, e,
// at the end of an epoch. It is asked after the dirty bit was cleared: whoever is
// about to change the node either has done so to an extent that shows here, or
// sets the bit after this.
func (s *store) isClean(g page, id btree.NodeID, e entry, ended uint64) bool {
	i := int(id % pageIDs)
	now := entry(g.entry(i).Load())
	switch {
	case now == 0: // neither gone nor free: it is being handed out
		return e == 0 && (g.has(goneBits, i) || g.has(freeBits, i))
	case now.inFile():
		return now == e
	}
	h, ok := btree.Peek(s.block(arena.Ref(now)))
	return ok && e != 0 && h.ID == id && h.Epoch <= ended
}
