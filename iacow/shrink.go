package iacow

import (
	"context"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// sparePart is the part of all blocks, 1/sparePart, that may be kept for the next
// changes.
const sparePart = 8

// Shrink gives blocks back that are not in use. With demote these become more:
// leaves and overflow pages that are what the last published checkpoint has of them
// are served from its files from then on. Inner nodes stay, because there hints
// spare every search a look at the node table.
func (x *Index) Shrink(ctx context.Context, demote bool) error {
	if invariants.Enabled && x.capturing {
		invariants.Fail("iacow: index %s is to shrink during a capture", x.spec.Name)
	}
	if !demote {
		return x.trim(ctx, x.store.held.Load()/sparePart)
	}
	if err := x.demote(ctx); err != nil {
		return err
	}
	return x.trim(ctx, 0)
}

func (x *Index) demote(ctx context.Context) error {
	s := x.store
	last := s.lastPublished()
	if last == nil {
		return nil
	}
	if err := x.expectFaults(ctx); err != nil {
		return err
	}
	var words pageWords
	for number := range uint32(last.footer.pages) {
		g, ok := s.page(number)
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := last.readPage(uint64(number), &words); err != nil {
			return err
		}
		s.demotePage(g, number, &words)
	}
	return nil
}

// expectFaults returns when every operation under way is prepared to meet a node
// in a file.
func (x *Index) expectFaults(ctx context.Context) error {
	if x.faultsExpected {
		return nil
	}
	x.mapped.Store(true)
	err := x.spec.Domain.Barrier(ctx)
	x.faultsExpected = err == nil
	return err
}

// demotePage lets the blocks go of those nodes of a page of the table that have not
// changed since the last published checkpoint, which has them at words.
func (s *store) demotePage(g page, number uint32, words *pageWords) {
	newest := s.published.Load()
	for i, image := range words {
		word := g.entry(i)
		now := entry(word.Load())
		if image == 0 || now == 0 || now.inFile() {
			continue
		}
		ref := arena.Ref(now)
		block := s.block(ref)
		if h, ok := btree.Peek(block); !ok || h.Inner {
			continue
		}
		if btree.Demote(word, block, ref, btree.NodeID(number<<pageShift|uint32(i)), newest, uint64(image)) {
			s.FreeBlock(0, ref)
		}
	}
}

// trim gives the blocks back to the arena that are not in use, but for some. It
// waits for those operations that may still be in one; that stale hints lead there
// later is harmless, as stable blocks name their owner.
func (x *Index) trim(ctx context.Context, keep int64) error {
	list := x.store.takeSurplus(keep)
	if list == 0 {
		return nil
	}
	err := x.spec.Domain.Barrier(ctx)
	for ref := list; ref != 0; {
		next := btree.Chained(x.store.block(ref))
		if err == nil {
			x.store.giveBack(ref)
		} else {
			x.store.FreeBlock(0, ref)
		}
		ref = next
	}
	return err
}
