package indirection

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// Array is the live indirection array of one table. All methods are safe for
// concurrent use, except where they say otherwise.
//
// Callers of Load, CompareAndSwap, Set and SetBatch are pinned in the epoch
// domain, or the only users of the array, as in replay. The
// errors of all methods are fault.ErrCorrupt for a damaged image, naming file
// and offset, and fault.ErrMemoryLimit; a method that returns an error has
// changed nothing.
type Array struct {
	arena *arena.Arena
	table rowid.Table
	dir   atomic.Pointer[directory]
	high  atomic.Uint64 // a multiple of PageSlots, or from the image

	newest   atomic.Pointer[base]    // nil: the array began empty, and there was no checkpoint
	bases    [2]atomic.Pointer[base] // it and, for a moment, the one before
	opened   span                    // of the image that the array began with, and of replay
	noted    map[uint64]emptySlots   // by page, see NoteFree
	inMemory atomic.Int64            // pages in the arena

	domain  *epoch.Domain
	leaving sync.RWMutex // excludes each other: Rebase, Leave, those who hold pages
	mu      sync.Mutex   // guards changes of the directory and of newest, and handles
	handles []*epoch.Handle
}

// directory lists the PIA blocks from PIA first on; 0 = not made yet. It is
// replaced by a larger copy, and a block is entered only into the current one,
// both under Array.mu. So a reader of an old directory misses only what was
// made after it had begun.
type directory struct {
	first  uint64
	blocks []atomic.Uint64 // arena.Ref
}

// NewArray returns the array of table t with the content of base, or an empty
// one if base is nil. It reads nothing of base yet. The array keeps base's files
// mapped until the next Rebase; the caller may close base.
func NewArray(d *epoch.Domain, a *arena.Arena, t rowid.Table, base *Image) *Array {
	x := &Array{arena: a, table: t, domain: d}
	dir := &directory{}
	if base != nil {
		if invariants.Enabled && base.Table() != t {
			invariants.Fail("image of table %d for the array of table %d", base.Table(), t)
		}
		x.newest.Store(newBase(base))
		x.bases[0].Store(x.newest.Load())
		x.opened = base.span()
		x.high.Store(base.HighWater())
		dir.first = base.firstPIA
		dir.blocks = make([]atomic.Uint64, base.pias)
	}
	x.dir.Store(dir)
	return x
}

// Load returns the word of an ordinal.
func (x *Array) Load(ordinal uint64) (Word, error) {
	if page := x.arenaPage(ordinal); page != 0 {
		return Word(x.slot(page, ordinal).Load()), nil
	}
	return x.loadSlow(ordinal)
}

// CompareAndSwap replaces the word of an ordinal if it is old, and reports
// whether it did. Memory is taken from the given arena shard.
func (x *Array) CompareAndSwap(shard uint32, ordinal uint64, old, new Word) (bool, error) {
	page := x.arenaPage(ordinal)
	if page == 0 {
		current, err := x.Load(ordinal)
		if err != nil || current != old {
			return false, err
		}
		if page, err = x.writablePage(shard, ordinal); err != nil {
			return false, err
		}
	}
	if new != 0 {
		x.raise(ordinal)
	}
	return x.slot(page, ordinal).CompareAndSwap(uint64(old), uint64(new)), nil
}

// Set replaces the word of an ordinal, whatever it is. It is for replay, where
// one goroutine at a time writes a page.
func (x *Array) Set(shard uint32, ordinal uint64, w Word) error {
	page := x.arenaPage(ordinal)
	if page == 0 {
		var err error
		if page, err = x.writablePage(shard, ordinal); err != nil {
			return err
		}
	}
	if w != 0 {
		x.raise(ordinal)
	}
	x.slot(page, ordinal).Store(uint64(w))
	return nil
}

// HighWater returns one past the largest ordinal that can be non-empty. It
// grows in steps of a page, so that writers of one page do not all write it.
func (x *Array) HighWater() uint64 { return x.high.Load() }

// raise precedes the write of a word, so that nothing is ever above the mark.
func (x *Array) raise(ordinal uint64) {
	for high := x.high.Load(); ordinal >= high; high = x.high.Load() {
		if x.high.CompareAndSwap(high, min(ordinal|(PageSlots-1)+1, ordinalEnd)) {
			return
		}
	}
}

// arenaPage returns the page of an ordinal if it is in the arena, else 0.
func (x *Array) arenaPage(ordinal uint64) arena.Ref {
	d := x.dir.Load()
	if i := piaOf(ordinal) - d.first; i < uint64(len(d.blocks)) {
		if block := d.blocks[i].Load(); block != 0 {
			if e := x.pageWord(arena.Ref(block), pageOf(ordinal)).Load(); inArena(e) {
				return arena.Ref(e)
			}
		}
	}
	return 0
}

// block returns the PIA block of a page, 0 if there is none yet.
func (x *Array) block(page uint64) arena.Ref {
	d := x.dir.Load()
	if i := piaOfPage(page) - d.first; i < uint64(len(d.blocks)) {
		return arena.Ref(d.blocks[i].Load())
	}
	return 0
}

// pageWord is the entry of a page in its PIA block.
func (x *Array) pageWord(block arena.Ref, page uint64) *atomic.Uint64 {
	return x.arena.Word(block + arena.Ref(pageInPIA(page)*wordBytes))
}

// slot is the word of an ordinal in its arena page.
func (x *Array) slot(page arena.Ref, ordinal uint64) *atomic.Uint64 {
	return x.arena.Word(page + arena.Ref(slotIn(ordinal)*wordBytes))
}

// Bytes is the memory that pages of the array take in the arena.
func (x *Array) Bytes() int64 { return x.inMemory.Load() * pageBytes }

// Close frees the array's memory and lets go of its images. No other method runs
// or is called any more, and no reader of the array is pinned.
func (x *Array) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := x.dir.Swap(&directory{})
	for i := range d.blocks {
		if block := arena.Ref(d.blocks[i].Load()); block != 0 {
			x.freeBlock(block)
		}
	}
	x.inMemory.Store(0)
	x.newest.Store(nil)
	return errors.Join(x.closeBase(0), x.closeBase(1))
}

// closeBase lets go of a base that no reader can have, if it is there.
func (x *Array) closeBase(i int) error {
	b := x.bases[i].Swap(nil)
	if b == nil {
		return nil
	}
	return b.close()
}

func (x *Array) freeBlock(block arena.Ref) {
	for page := range uint64(piaPages) {
		if e := x.pageWord(block, page).Load(); inArena(e) {
			x.arena.Free(shardOf(page), arena.Ref(e), pageBytes)
		}
	}
	x.arena.Free(shardOf(uint64(block)), block, blockBytes)
}

func errSpan(ordinal uint64) error {
	return fmt.Errorf("indirection: ordinal %d is too far from the others of its table: %w", ordinal, fault.ErrMemoryLimit)
}
