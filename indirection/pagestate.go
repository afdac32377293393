package indirection

import (
	"errors"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// A page's word in its PIA block:
//
//	0                            no slot was ever used
//	stateWritten                 no slot is used
//	bits 63-48 clear             arena.Ref of the page
//	stateLeaving|Ref             in the arena, about to leave it
//	stateMapped                  page of a base that nobody has read yet
//	stateMapped|stateVerified    page of a base, checked, without a patch:
//	                             place of its file in bits 59-56, file offset
//	                             / pageBytes in bits 31-0
//	  ...|stateOverlay           page of a base, checked, with a patch
//
// Words in stateMapped have stateSecond if their base is bases[1], and stateWritten,
// like the word of a page without rows, if the page was in the arena before.
const (
	stateMapped   = 1 << 63
	stateVerified = 1 << 62
	stateOverlay  = 1 << 61
	stateWritten  = 1 << 60
	stateSecond   = 1 << 55
	stateLeaving  = 1 << 48

	statePlaceShift = 56
	stateBlockMask  = 1<<32 - 1
	refLimit        = 1 << 47
)

// A Ref leaves the flags free.
const _ = uint64(stateLeaving - refLimit)

func inArena(state uint64) bool { return state-1 < refLimit-1 }

func isLeaving(state uint64) bool { return state>>47 == stateLeaving>>47 }

// isFree reports whether a page has no rows, and no place.
func isFree(state uint64) bool { return state&^stateWritten == 0 }

func isMapped(state uint64) bool { return state&stateMapped != 0 }

// refOf is the page of a state in the arena, leaving or not.
func refOf(state uint64) arena.Ref { return arena.Ref(state &^ stateLeaving) }

// inFile is the state of a page of a base that was checked.
func (b *base) inFile(e pageEntry) uint64 {
	if !e.inPlace() {
		return stateMapped | b.bit | stateVerified | stateOverlay
	}
	return stateMapped | b.bit | stateVerified | uint64(e.basePlace)<<statePlaceShift | uint64(e.base)
}

func verifiedPlace(state uint64) int     { return int(state >> statePlaceShift & (placeCount - 1)) }
func verifiedOffset(state uint64) uint64 { return state & stateBlockMask * pageBytes }

// shardOf spreads work that has no shard of its own.
func shardOf(n uint64) uint32 { return uint32(n) }

// baseOf is the base of a state in stateMapped.
func (x *Array) baseOf(state uint64) *base { return x.bases[state/stateSecond&1].Load() }

// loadSlow reads a word whose page is not in the arena, or was not a moment
// ago.
func (x *Array) loadSlow(ordinal uint64) (Word, error) {
	page := pageOf(ordinal)
	block := x.block(page)
	if block == 0 {
		b := x.newest.Load()
		if !b.hasPIA(piaOfPage(page)) {
			return 0, nil
		}
		var err error
		if block, err = x.writableBlock(shardOf(page), page); err != nil {
			return loadAside(b, ordinal, err)
		}
	}
	state, err := x.checked(block, page)
	switch {
	case err != nil:
		return 0, err
	case isFree(state):
		return 0, nil
	case isMapped(state):
		return x.baseOf(state).load(state, page, slotIn(ordinal))
	}
	return Word(x.slot(refOf(state), ordinal).Load()), nil
}

// loadAside reads a word from the image without keeping anything, when the
// memory limit forbids to make a block: reads go on at the limit. The page was
// untouched after the call had begun, so its word was the image's.
func loadAside(b *base, ordinal uint64, err error) (Word, error) {
	if !errors.Is(err, fault.ErrMemoryLimit) {
		return 0, err
	}
	var r pageReader
	var content [pageBytes]byte
	if _, err := r.read(&b.image, pageOf(ordinal), &content); err != nil {
		return 0, err
	}
	return word(content[:], int(slotIn(ordinal))), nil
}

// checked returns the state of a page after checking it, if it is in a file and
// nobody has done so.
func (x *Array) checked(block arena.Ref, page uint64) (uint64, error) {
	at := x.pageWord(block, page)
	state := at.Load()
	for isMapped(state) && state&stateVerified == 0 {
		b := x.baseOf(state)
		e, err := b.entry(page)
		if err == nil {
			err = b.verify(page, e)
		}
		if err != nil {
			return 0, err
		}
		at.CompareAndSwap(state, b.inFile(e)|state&stateWritten)
		state = at.Load()
	}
	return state, nil
}

// writablePage returns the arena page of an ordinal and makes it if necessary.
func (x *Array) writablePage(shard uint32, ordinal uint64) (arena.Ref, error) {
	page := pageOf(ordinal)
	block, err := x.writableBlock(shard, page)
	if err != nil {
		return 0, err
	}
	return x.moveToArena(shard, block, page)
}

// moveToArena puts a copy of a page into the arena, or lets it stay there, and
// returns its place.
func (x *Array) moveToArena(shard uint32, block arena.Ref, page uint64) (arena.Ref, error) {
	at := x.pageWord(block, page)
	state, there := stay(at)
	if there {
		return arena.Ref(state), nil
	}
	fresh, err := x.arena.AllocLasting(shard, pageBytes)
	if err != nil {
		return 0, err
	}
	for !there {
		if err := x.copyPage(page, state, x.arena.Bytes(fresh, pageBytes)); err != nil {
			x.arena.Free(shard, fresh, pageBytes)
			return 0, err
		}
		if at.CompareAndSwap(state, uint64(fresh)) {
			x.inMemory.Add(1)
			return fresh, nil
		}
		state, there = stay(at)
	}
	x.arena.Free(shard, fresh, pageBytes)
	return arena.Ref(state), nil
}

// stay returns the state of a page and whether it is in the arena. If it was about
// to leave, it stays.
func stay(at *atomic.Uint64) (state uint64, there bool) {
	for {
		if state = at.Load(); !isLeaving(state) {
			return state, inArena(state)
		}
		at.CompareAndSwap(state, state&^stateLeaving)
	}
}

// copyPage fills dst with the content of a page that is in the given state, not
// in the arena.
func (x *Array) copyPage(page, state uint64, dst []byte) (err error) {
	switch {
	case isFree(state):
		clear(dst)
	case state&stateVerified != 0 && state&stateOverlay == 0:
		err = x.baseOf(state).copy(state, dst)
	default:
		err = x.baseOf(state).read(page, dst)
	}
	toHostOrder(dst)
	return err
}
