// Package arena is the off-heap memory of row versions and index nodes.
package arena

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Ref is the address of a block: a byte offset, 0 = nil, a multiple of 8,
// below 1<<47.
type Ref uint64

// ChunkSize is the unit in bytes in which memory is reserved.
const ChunkSize = 1 << chunkShift

// MaxBlock is the largest block in bytes.
const MaxBlock = ChunkSize - 16<<10

const (
	chunkShift = 22
	ptrSize    = unsafe.Sizeof(uintptr(0))
)

// Config sets up an Arena. The zero value is usable.
type Config struct {
	Limit  int64 // most bytes to reserve from the system, in whole chunks; 0 = none
	Shards int   // number of shards, rounded up to a power of two; 0 = by GOMAXPROCS
}

// Stats is what an Arena holds, in bytes unless said otherwise.
type Stats struct {
	Reserved  int64 // chunks in use
	InUse     int64 // live blocks, rounded up to their size class
	Requested int64 // live blocks, as asked for
	Chunks    int   // number of chunks in use
}

// Arena hands out blocks of off-heap memory.
type Arena struct {
	table atomic.Pointer[unsafe.Pointer]
	mu    sync.Mutex
	limit int64
	used  int
	bases []unsafe.Pointer
	free  map[int][]Ref
	stats Stats
}

// New returns an empty arena. It reserves nothing before the first Alloc.
func New(c Config) *Arena {
	return &Arena{limit: c.Limit, free: make(map[int][]Ref), used: ChunkSize, bases: make([]unsafe.Pointer, 1)}
}

// Alloc returns a block of at least size bytes, 8-aligned, content
// undefined. The error is fault.ErrMemoryLimit at the limit.
func (a *Arena) Alloc(shard uint32, size int) (Ref, error) {
	if size < 0 || size > MaxBlock {
		return 0, fmt.Errorf("arena: block of %d bytes, limit %d: %w", size, MaxBlock, fault.ErrRowTooLarge)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	class := classOf(size)
	r, err := a.take(class)
	if err == nil {
		a.stats.InUse += int64(class)
		a.stats.Requested += int64(size)
	}
	return r, err
}

func classOf(size int) int {
	return min(1<<bits.Len(uint(max(size, 16)-1)), ChunkSize)
}

func (a *Arena) take(class int) (Ref, error) {
	if l := a.free[class]; len(l) > 0 {
		a.free[class] = l[:len(l)-1]
		return l[len(l)-1], nil
	}
	off := (a.used + class - 1) &^ (min(class, 4096) - 1)
	if off+class > ChunkSize {
		if err := a.grow(); err != nil {
			return 0, err
		}
		off = max(class, 64) & (ChunkSize - 1) & 8191
	}
	a.used = off + class
	return Ref(len(a.bases)-1)<<chunkShift | Ref(off), nil
}

func (a *Arena) grow() error {
	if a.limit > 0 && a.stats.Reserved+ChunkSize > a.limit {
		return fmt.Errorf("arena: %d bytes reserved, limit %d: %w", a.stats.Reserved, a.limit, fault.ErrMemoryLimit)
	}
	chunk := make([]byte, ChunkSize+8192)
	bases := append(append([]unsafe.Pointer(nil), a.bases...), unsafe.Pointer(&chunk[0]))
	a.bases = bases
	a.table.Store(&bases[0])
	a.stats.Reserved += ChunkSize
	a.stats.Chunks++
	return nil
}

// Free gives a block back; size is the one given to Alloc.
func (a *Arena) Free(shard uint32, r Ref, size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	class := classOf(size)
	a.free[class] = append(a.free[class], r)
	a.stats.InUse -= int64(class)
	a.stats.Requested -= int64(size)
}

// Pointer returns the memory at r, which must not be nil.
func (a *Arena) Pointer(r Ref) unsafe.Pointer {
	base := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(a.table.Load()), uintptr(r>>chunkShift)*ptrSize))
	return unsafe.Add(base, uintptr(r)&(ChunkSize-1))
}

// Bytes returns the n bytes at r.
func (a *Arena) Bytes(r Ref, n int) []byte {
	return unsafe.Slice((*byte)(a.Pointer(r)), n)
}

// Word returns the word at r as an atomic.
func (a *Arena) Word(r Ref) *atomic.Uint64 {
	return (*atomic.Uint64)(a.Pointer(r))
}

// Stats returns the sums over all shards.
func (a *Arena) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// Close gives all memory back to the system. No Ref may be used afterwards.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bases, a.free, a.stats = nil, nil, Stats{}
	a.table.Store(nil)
	return nil
}
