package indirection

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// Rebase makes the image of a checkpoint that has just been published the one that
// pages in files are read from. The snapshot that pinned the checkpoint is still
// open, so that what a deleted row leaves in its slot is there too. The caller may
// close the image, and is not pinned. After an error the array has the base that it
// had, or has to wait for readers before it lets go of that; the next Rebase does.
func (x *Array) Rebase(ctx context.Context, im *Image) error {
	x.leaving.Lock()
	defer x.leaving.Unlock()
	if err := x.closeOlder(ctx); err != nil {
		return err
	}
	old, next := x.newest.Load(), newBase(im)
	i := 0
	if old != nil && old.bit == 0 {
		i, next.bit = 1, stateSecond
	}
	if err := x.sameInFiles(old, next); err != nil {
		return errors.Join(err, next.close())
	}
	x.bases[i].Store(next)
	x.mu.Lock()
	x.newest.Store(next)
	x.mu.Unlock()
	if old != nil {
		x.passOn(old, next)
	}
	return x.closeOlder(ctx)
}

// closeOlder closes the base that is not the newest one, when nobody can read it
// any more.
func (x *Array) closeOlder(ctx context.Context) error {
	for i := range x.bases {
		b := x.bases[i].Load()
		if b == nil || b == x.newest.Load() {
			continue
		}
		if err := x.domain.Barrier(ctx); err != nil {
			return err
		}
		return x.closeBase(i)
	}
	return nil
}

// passOn makes pages of one base pages of another one, not read yet.
func (x *Array) passOn(old, next *base) {
	d := x.dir.Load()
	for i := range d.blocks {
		block := arena.Ref(d.blocks[i].Load())
		if block == 0 {
			continue
		}
		for page := range uint64(piaPages) {
			at := x.pageWord(block, page)
			for state := at.Load(); isMapped(state) && state&stateSecond == old.bit; state = at.Load() {
				at.CompareAndSwap(state, stateMapped|next.bit|state&stateWritten)
			}
		}
	}
}

// sameInFiles makes sure that an image has those pages that are not in the arena as
// the base has them, which may be nil. It reads all directory chunks of both.
func (x *Array) sameInFiles(old, next *base) error {
	d := x.dir.Load()
	first, end := d.first, d.first+uint64(len(d.blocks))
	for _, b := range []*base{old, next} {
		if b != nil && b.image.pias > 0 {
			if first == end {
				first, end = b.image.firstPIA, b.image.firstPIA
			}
			first, end = min(first, b.image.firstPIA), max(end, b.image.firstPIA+b.image.pias)
		}
	}
	var before, after [piaPages]pageEntry
	for pia := first; pia < end; pia++ {
		if err := errors.Join(old.chunk(pia, &before), next.chunk(pia, &after)); err != nil {
			return err
		}
		if err := x.sameInPIA(pia, &before, &after, next); err != nil {
			return err
		}
	}
	return nil
}

// chunk reads the entries of a PIA, zeros if the base, which may be nil, has none.
func (b *base) chunk(pia uint64, entries *[piaPages]pageEntry) error {
	if !b.hasPIA(pia) {
		clear(entries[:])
		return nil
	}
	return b.image.readChunk(pia, entries)
}

// sameInPIA compares by what the entries say of the contents.
func (x *Array) sameInPIA(pia uint64, before, after *[piaPages]pageEntry, next *base) error {
	block := x.block(pia * piaPages)
	for i, e := range before {
		if block != 0 {
			switch state := x.pageWord(block, uint64(i)).Load(); {
			case isFree(state):
				e = pageEntry{}
			case !isMapped(state):
				continue
			}
		}
		if after[i].sum != e.sum || after[i].live != e.live {
			return &fault.File{Kind: fault.ErrCorrupt, Path: next.image.newest.Path, Reason: "the image of a checkpoint has other words than a page that nobody has written"}
		}
	}
	return nil
}
