package indirection

import (
	"errors"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// A page's word in its PIA block:
//
//	0                            no slot was ever used
//	bits 63-61 clear             arena.Ref of the page
//	stateMapped                  page of the base image that nobody has read
//	stateMapped|stateVerified    base of the image's page, checked, unpatched:
//	                             place of its file in bits 59-56, file offset
//	                             / pageBytes in bits 31-0
//	stateOverlay                 reserved; not made by this version
//
// Words change by CAS, only in this order and only to the right: mapped,
// verified, arena; or 0, arena. A page in the arena stays there.
const (
	stateMapped   = 1 << 63
	stateVerified = 1 << 62
	stateOverlay  = 1 << 61

	statePlaceShift = 56
	stateBlockMask  = 1<<32 - 1
	refLimit        = 1 << 47
)

// A Ref leaves the flags free.
const _ = uint64(stateOverlay - refLimit)

func inArena(state uint64) bool { return state-1 < refLimit-1 }

func verifiedState(e pageEntry) uint64 {
	return stateMapped | stateVerified | uint64(e.basePlace)<<statePlaceShift | uint64(e.base)
}

func verifiedPlace(state uint64) int     { return int(state >> statePlaceShift & (placeCount - 1)) }
func verifiedOffset(state uint64) uint64 { return state & stateBlockMask * pageBytes }

// shardOf spreads work that has no shard of its own.
func shardOf(n uint64) uint32 { return uint32(n) }

// loadSlow reads a word whose page is not in the arena, or was not a moment
// ago.
func (x *Array) loadSlow(ordinal uint64) (Word, error) {
	page := pageOf(ordinal)
	block := x.block(page)
	if block == 0 {
		if x.base == nil || !x.base.image.hasPIA(piaOfPage(page)) {
			return 0, nil
		}
		var err error
		if block, err = x.writableBlock(shardOf(page), page); err != nil {
			return x.loadAside(ordinal, err)
		}
	}
	state := x.pageWord(block, page).Load()
	if state == stateMapped {
		var err error
		if state, err = x.resolve(block, page); err != nil {
			return x.loadAside(ordinal, err)
		}
	}
	switch {
	case state == 0:
		return 0, nil
	case inArena(state):
		return Word(x.slot(arena.Ref(state), ordinal).Load()), nil
	}
	return x.base.load(state, slotIn(ordinal))
}

// loadAside reads a word from the image without keeping the page, when the
// memory limit forbids to keep it: reads go on at the limit. The page was
// untouched after the call had begun, so its word was the image's.
func (x *Array) loadAside(ordinal uint64, err error) (Word, error) {
	if !errors.Is(err, fault.ErrMemoryLimit) || x.base == nil {
		return 0, err
	}
	var r pageReader
	var b [pageBytes]byte
	if _, err := r.read(&x.base.image, pageOf(ordinal), &b); err != nil {
		return 0, err
	}
	return word(b[:], int(slotIn(ordinal))), nil
}

// resolve brings a page out of stateMapped: a patched one goes into the arena,
// another one is checked where it is. It returns the new state.
func (x *Array) resolve(block arena.Ref, page uint64) (uint64, error) {
	e, err := x.base.entry(page)
	if err != nil {
		return 0, err
	}
	if e.hasPatch() {
		return x.moveToArena(shardOf(page), block, page)
	}
	if err := x.base.verify(page, e); err != nil {
		return 0, err
	}
	if x.pageWord(block, page).CompareAndSwap(stateMapped, verifiedState(e)) {
		x.base.drop(int(x.base.image.own), 1)
	}
	return x.pageWord(block, page).Load(), nil
}

// writablePage returns the arena page of an ordinal and makes it if necessary.
func (x *Array) writablePage(shard uint32, ordinal uint64) (arena.Ref, error) {
	page := pageOf(ordinal)
	block, err := x.writableBlock(shard, page)
	if err != nil {
		return 0, err
	}
	state, err := x.moveToArena(shard, block, page)
	return arena.Ref(state), err
}

// moveToArena puts a copy of a page into the arena, unless it is there, and
// returns its state then.
func (x *Array) moveToArena(shard uint32, block arena.Ref, page uint64) (uint64, error) {
	at := x.pageWord(block, page)
	state := at.Load()
	if inArena(state) {
		return state, nil
	}
	fresh, err := x.arena.AllocLasting(shard, pageBytes)
	if err != nil {
		return 0, err
	}
	for !inArena(state) {
		e, err := x.copyPage(page, state, x.arena.Bytes(fresh, pageBytes))
		if err != nil {
			x.arena.Free(shard, fresh, pageBytes)
			return 0, err
		}
		if at.CompareAndSwap(state, uint64(fresh)) {
			x.settle(state, e)
			return uint64(fresh), nil
		}
		state = at.Load()
	}
	x.arena.Free(shard, fresh, pageBytes)
	return state, nil
}

// copyPage fills dst with the content of a page that is in the given state, not
// in the arena. For stateMapped it returns the page's entry.
func (x *Array) copyPage(page, state uint64, dst []byte) (e pageEntry, err error) {
	switch {
	case state == 0:
		clear(dst)
	case state&stateVerified != 0:
		err = x.base.copy(state, dst)
	default:
		e, err = x.base.read(page, dst)
	}
	toHostOrder(dst)
	return e, err
}

// settle gives up what a page needed of the base image before it went into the
// arena.
func (x *Array) settle(state uint64, e pageEntry) {
	switch {
	case state == 0:
	case state&stateVerified != 0:
		x.base.drop(verifiedPlace(state), 1)
	default:
		x.base.dropEntry(e)
	}
}
