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
			if f := s.settle(g, number, &sh.words, c.ending); f != (freed{number: number}) {
				x.freed = append(x.freed, f)
			}
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

// retire makes use of it that the readers of the time of the last adopt have
// gone. It unmaps the files that were left behind, to which no entry refers any
// more, and frees ids: a reader that has come to one by a stale way would take
// what it finds there for the node that it looked for.
func (x *Index) retire() error {
	x.store.release(x.freed)
	x.freed = nil
	var errs []error
	for _, place := range x.retired {
		errs = append(errs, x.store.files[place].Swap(nil).close())
	}
	x.retired = x.retired[:0]
	return errors.Join(errs...)
}

// freed is a set of ids of one page that no published checkpoint has.
type freed struct {
	number uint32
	ids    [bitmapWords]uint64
}

// settle compares a page in memory with what has been published of it at the
// end of an epoch. Nodes that are still in files are where the new checkpoint
// has them, and what does not differ from it is no longer dirty. It returns the
// ids that were dropped.
func (s *store) settle(g page, number uint32, words *pageWords, ended uint64) freed {
	f := freed{number: number}
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
			f.ids[i/64] |= 1 << (i % 64)
		}
	}
	if g.any(dirtyBits) {
		s.queue(g, number)
	}
	return f
}

// isClean reports whether a node certainly is what has been published of it, e,
// at the end of an epoch. It is asked after the dirty bit was cleared: whoever is
// about to change the node either has done so to an extent that shows here, or
// sets the bit after this.
func (s *store) isClean(g page, id btree.NodeID, e entry, ended uint64) bool {
	i := int(id % pageIDs)
	now := entry(g.entry(i).Load())
	switch {
	case now == 0: // unless it is being handed out
		return e == 0 && (g.has(goneBits, i) || g.has(freeBits, i))
	case now.inFile():
		return now == e
	}
	h, ok := btree.Peek(s.block(arena.Ref(now)))
	return ok && e != 0 && h.ID == id && h.Epoch <= ended
}
