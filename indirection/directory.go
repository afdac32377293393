package indirection

import (
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
)

// blockBytes is the size of a PIA block: one word a page.
const blockBytes = piaPages * wordBytes

// writableBlock returns the PIA block of a page and makes it if necessary.
func (x *Array) writableBlock(shard uint32, page uint64) (arena.Ref, error) {
	if block := x.block(page); block != 0 {
		return block, nil
	}
	block, err := x.arena.AllocLasting(shard, blockBytes)
	if err != nil {
		return 0, err
	}
	installed, err := x.install(block, piaOfPage(page))
	if installed != block {
		x.arena.Free(shard, block, blockBytes)
	}
	return installed, err
}

// install fills a block and enters it into the directory. It returns the block
// that is there in the end, 0 on error. Mapped bytes are read before the mutex
// is taken; if the base is another one by then they are read again.
func (x *Array) install(block arena.Ref, pia uint64) (arena.Ref, error) {
	for {
		b := x.newest.Load()
		if err := x.fillBlock(block, pia, b); err != nil {
			return 0, err
		}
		installed, err := x.enter(block, pia, b)
		if installed != 0 || err != nil {
			return installed, err
		}
	}
}

// enter enters a block that was filled from b, unless there is one or b is no
// longer the newest base. It returns the block that is there in the end.
func (x *Array) enter(block arena.Ref, pia uint64, b *base) (arena.Ref, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	place, err := x.place(pia)
	if err != nil {
		return 0, err
	}
	if place.Load() == 0 && x.newest.Load() == b {
		place.Store(uint64(block))
	}
	return arena.Ref(place.Load()), nil
}

// fillBlock takes the pages of a PIA from a base.
func (x *Array) fillBlock(block arena.Ref, pia uint64, b *base) error {
	if !b.hasPIA(pia) {
		clear(x.arena.Bytes(block, blockBytes))
		return nil
	}
	var entries [piaPages]pageEntry
	if err := b.image.readChunk(pia, &entries); err != nil {
		return err
	}
	for i, e := range entries {
		state := uint64(0)
		if !e.empty() {
			state = stateMapped | b.bit
		}
		x.pageWord(block, uint64(i)).Store(state)
	}
	return nil
}

// place returns the directory's place for a PIA and lets the directory grow to
// have it. The caller holds x.mu.
func (x *Array) place(pia uint64) (*atomic.Uint64, error) {
	d := x.dir.Load()
	if pia-d.first >= uint64(len(d.blocks)) {
		grown := d.grow(pia)
		if grown == nil {
			return nil, errSpan(pia << piaShift)
		}
		d = grown
		x.dir.Store(d)
	}
	return &d.blocks[pia-d.first], nil
}

// grow returns a copy that has a place for pia: at least twice as large, so
// that copying costs little in total, or just enough at the limits. It returns
// nil if the span would be too large.
func (d *directory) grow(pia uint64) *directory {
	length := uint64(len(d.blocks))
	first, end := pia, pia+1
	if length > 0 {
		first, end = min(first, d.first), max(end, d.first+length)
	}
	if end-first > maxSpan || end > piaEnd {
		return nil
	}
	spare := min(length, maxSpan-(end-first))
	if first == d.first || length == 0 {
		end = min(end+spare, piaEnd)
	} else {
		first -= min(spare, first)
	}
	grown := &directory{first: first, blocks: make([]atomic.Uint64, end-first)}
	for i := range d.blocks {
		grown.blocks[d.first-first+uint64(i)].Store(d.blocks[i].Load())
	}
	return grown
}
