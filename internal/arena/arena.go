package arena

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// Ref is the address of a block: a byte offset, 0 = nil, a multiple of 8,
// below 1<<47. Adding to a Ref gives the address of a byte inside the block.
type Ref uint64

// ChunkSize is the unit in bytes in which memory is reserved.
const ChunkSize = 1 << chunkShift

// MaxBlock is the largest block in bytes.
const MaxBlock = (pagesPerChunk - 1) << pageShift

// StableBlock is the size in bytes of the blocks of AllocStable.
const StableBlock = 2048

// stableHead bytes at the start of a stable block may be looked at when it is
// free.
const stableHead = 64

const maxShards = 64

// Config sets up an Arena. The zero value is usable.
type Config struct {
	// Limit is the most memory in bytes to reserve from the system. It is
	// used in whole chunks, so below ChunkSize nothing can be allocated.
	// 0 = no limit.
	Limit int64
	// OnMark is called whenever one more span is taken above the mark of
	// SetMark, with a lock held: it must not wait, nor use the arena.
	OnMark func()
	// Shards is rounded up to a power of two, at most 64. 0 = twice
	// GOMAXPROCS.
	Shards int
}

// Stats says what an arena holds.
type Stats struct {
	Reserved  int64 // bytes of the chunks in use or being prepared, without what went back to the system
	InUse     int64 // bytes of the live blocks, each rounded up to its class
	Requested int64 // bytes of the live blocks, as asked for
	Chunks    int   // chunks in use
}

// Arena hands out blocks of off-heap memory. All methods except Close may be
// called concurrently.
type Arena struct {
	table   table
	mask    uint32  // number of shards for everybody - 1
	shards  []shard // those, and behind them one for each priority above Growth
	classes [classCount]class
	_       [lineSize]byte // everything above is only read in the long run
	heap    heap
	owners  atomic.Uint32
}

// New returns an empty arena. It reserves nothing before the first Alloc.
func New(c Config) *Arena {
	n := c.Shards
	if n <= 0 {
		n = 2 * runtime.GOMAXPROCS(0)
	}
	n = 1 << bits.Len(uint(min(n, maxShards)-1))
	a := &Arena{mask: uint32(n - 1), shards: make([]shard, n+int(priorities)-1)}
	for i := range a.shards {
		a.shards[i].id = uint32(i)
		a.shards[i].priority = Priority(max(0, i-n+1))
	}
	makeClasses(&a.classes)
	a.heap.init(&a.table, c)
	return a
}

// Alloc returns a block of size bytes with undefined content. Callers with
// different shard numbers (taken modulo the number of shards) disturb each
// other least; Priority.Shard gives such a number a priority. The error is
// fault.ErrMemoryLimit where the limit, the reserve or the system allows no more,
// fault.ErrRowTooLarge above MaxBlock.
func (a *Arena) Alloc(shard uint32, size int) (Ref, error) {
	if uint(size) > maxSmall {
		return a.allocLarge(priorityOf(shard), size)
	}
	return a.allocSmall(shard, size, &a.classes[classOf(size)])
}

// AllocLasting is Alloc of a block, of at most 112 KiB, that will stay for
// long. Such blocks lie together, so that they keep no memory from going back
// to the system that shorter-lived ones have left.
func (a *Arena) AllocLasting(shard uint32, size int) (Ref, error) {
	return a.allocSmall(shard, size, &a.classes[sizeCount+classOf(size)])
}

// AllocStable is AllocLasting of a block of StableBlock bytes whose memory will
// never be anything but such a block. Who still has the Ref of a freed one may
// look at its first 64 bytes, by atomic loads: they are as they were left, or
// zero, until the block is allocated again.
func (a *Arena) AllocStable(shard uint32) (Ref, error) {
	return a.allocSmall(shard, StableBlock, &a.classes[stableClass])
}

// NewOwner returns a number, from 1 on, that it returns once. Owners of stable
// blocks write theirs into them, so that they know them again.
func (a *Arena) NewOwner() uint32 { return a.owners.Add(1) }

func (a *Arena) allocSmall(shard uint32, size int, c *class) (Ref, error) {
	r, err := a.allocFrom(&a.shards[shard&a.mask&c.shardMask], size, c)
	if p := priorityOf(shard); err != nil && p != Growth && errors.Is(err, fault.ErrMemoryLimit) {
		return a.allocFrom(a.reserve(p), size, c)
	}
	return r, err
}

func (a *Arena) allocFrom(s *shard, size int, c *class) (Ref, error) {
	s.latch.lock()
	r := s.take(c)
	if r == 0 {
		var err error
		if r, err = a.refill(s, c); err != nil {
			return 0, err
		}
	}
	s.inUse += int64(c.size)
	s.requested += int64(size)
	s.latch.unlock()
	if invariants.Enabled {
		a.checkPoison(r, c)
	}
	return r, nil
}

// Free gives back the block that Alloc returned for size. Nobody may use it
// any more; packages with concurrent readers call epoch.Handle.Retire instead.
// Any shard number will do: the block returns to where it came from.
func (a *Arena) Free(_ uint32, r Ref, size int) {
	if invariants.Enabled {
		a.checkFree(r, size)
	}
	if uint(size) > maxSmall {
		a.heap.freeLarge(r, size)
		return
	}
	sp, base := a.table.spanAt(r)
	c := &a.classes[sp.class]
	s := a.latchOwner(sp)
	s.inUse -= int64(c.size)
	s.requested -= int64(size)
	empty := s.put(&a.table, c, sp, base, r)
	s.latch.unlock()
	if empty {
		a.heap.giveBack(c, base)
	}
}

// Pointer returns the memory at r, which is neither nil nor freed. It is valid
// until the block is freed; as it is no Go memory, it keeps nothing alive.
func (a *Arena) Pointer(r Ref) unsafe.Pointer {
	if invariants.Enabled {
		a.checkRef(r)
	}
	return a.table.memory(r)
}

// Bytes returns the n bytes at r, under the same terms as Pointer.
func (a *Arena) Bytes(r Ref, n int) []byte {
	return unsafe.Slice((*byte)(a.Pointer(r)), n)
}

// Word returns the 8-aligned word at r, under the same terms as Pointer.
func (a *Arena) Word(r Ref) *atomic.Uint64 {
	if invariants.Enabled && r%8 != 0 {
		invariants.Fail("word at %#x is not aligned", uint64(r))
	}
	return (*atomic.Uint64)(a.Pointer(r))
}

// Trim gives back what the arena holds only to be quick: spans that shards
// allocate from and that have become wholly free, and wholly free chunks beyond
// the stock. It is for a quiet moment.
func (a *Arena) Trim() {
	for i := range a.shards {
		for c, base := a.shards[i].trim(a); base != 0; c, base = a.shards[i].trim(a) {
			a.heap.giveBack(c, base)
		}
	}
	a.heap.shrink(0, pagesPerChunk)
}

// SetMark says from how many bytes in spans on Config.OnMark is called. 0 = never.
func (a *Arena) SetMark(mark int64) {
	a.heap.mu.Lock()
	defer a.heap.mu.Unlock()
	a.heap.mark = mark
}

// Thin gives free pages back that lie between blocks, but for the stock: Reserved
// comes closer to InUse. Their next use costs page faults, and the chunks get no
// huge pages any more until they have been wholly free.
func (a *Arena) Thin() { a.heap.thin() }

// Stats returns the present state: exact when no Alloc or Free is running.
func (a *Arena) Stats() Stats {
	st := a.heap.stats()
	for i := range a.shards {
		s := &a.shards[i]
		s.latch.lock()
		st.InUse += s.inUse
		st.Requested += s.requested
		s.latch.unlock()
	}
	return st
}

// Close gives all memory back to the system. Neither the arena nor any of its
// blocks may be used during or after it, except for another Close.
func (a *Arena) Close() error { return a.heap.close() }

func (a *Arena) allocLarge(p Priority, size int) (Ref, error) {
	if size < 0 || size > MaxBlock {
		return 0, fmt.Errorf("arena: block of %d bytes, limit %d: %w", size, MaxBlock, fault.ErrRowTooLarge)
	}
	r, err := a.heap.allocLarge(p, size)
	if invariants.Enabled && err == nil {
		poison(a.Bytes(r, size))
	}
	return r, err
}
