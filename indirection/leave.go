package indirection

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
)

// Leave lets pages go out of memory, from now on to be read from the newest image:
// those of the given ones whose slots are as the image has them. It returns the
// bytes that this frees as soon as no reader has them any more. It waits for the
// pins of this moment to end; the caller is not pinned. The protocol is in the
// package documentation.
func (x *Array) Leave(ctx context.Context, pages []uint64) (bytes int64, err error) {
	x.leaving.Lock()
	defer x.leaving.Unlock()
	b := x.newest.Load()
	if b == nil {
		return 0, nil
	}
	h := x.takeHandle()
	defer x.returnHandle(h)
	var marked []uint64
	for _, page := range pages {
		done, markErr := x.mark(h, b, page)
		err = errors.Join(err, markErr)
		if done {
			marked = append(marked, page)
		}
	}
	if len(marked) == 0 {
		return 0, err
	}
	if wait := x.domain.Barrier(ctx); wait != nil {
		for _, page := range marked {
			stay(x.pageWord(x.block(page), page))
		}
		return 0, errors.Join(err, wait)
	}
	for _, page := range marked {
		n, leaveErr := x.leave(h, b, page)
		bytes += n
		err = errors.Join(err, leaveErr)
	}
	return bytes, err
}

// Hold keeps all pages in memory that are there, or come there, until the function
// that it returns is called: who has made room for a write then still has it. The
// caller is not pinned.
func (x *Array) Hold() (release func()) {
	x.leaving.RLock()
	return x.leaving.RUnlock
}

// mark begins to let a page go, if it is in the arena and the base has the same, as
// far as can be told without checking that: most pages that stay differ.
func (x *Array) mark(h *epoch.Handle, b *base, page uint64) (bool, error) {
	h.Pin()
	defer h.Unpin()
	block := x.block(page)
	if block == 0 {
		return false, nil
	}
	at := x.pageWord(block, page)
	state := at.Load()
	if !inArena(state) {
		return false, nil
	}
	_, same, err := x.compare(b, page, arena.Ref(state), false)
	return same && at.CompareAndSwap(state, state|stateLeaving), err
}

// leave lets a page go that was marked, unless somebody has cancelled that or has
// written to it before.
func (x *Array) leave(h *epoch.Handle, b *base, page uint64) (bytes int64, err error) {
	h.Pin()
	defer h.Unpin()
	at := x.pageWord(x.block(page), page)
	state := at.Load()
	if !isLeaving(state) {
		return 0, nil
	}
	e, same, err := x.compare(b, page, refOf(state), true)
	if !same {
		stay(at)
		return 0, err
	}
	to := uint64(stateWritten)
	if !e.empty() {
		to |= b.inFile(e)
	}
	if !at.CompareAndSwap(state, to) {
		return 0, nil
	}
	x.inMemory.Add(-1)
	h.Retire(refOf(state), pageBytes)
	return pageBytes, nil
}

// compare compares a page in the arena with that of a base, checked or not.
func (x *Array) compare(b *base, page uint64, at arena.Ref, check bool) (e pageEntry, same bool, err error) {
	var content [pageBytes]byte
	if b.hasPIA(piaOfPage(page)) {
		if e, err = b.find(page, content[:], check); err != nil {
			return e, false, err
		}
	}
	for slot := range uint64(PageSlots) {
		if x.slot(at, slot).Load() != uint64(word(content[:], int(slot))) {
			return e, false, nil
		}
	}
	return e, true, nil
}
