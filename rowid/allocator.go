package rowid

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
)

const (
	rangeSize = 64 // a power of two
	maxShards = 64
	lineBytes = 128 // two lines: the prefetcher fetches them in pairs
)

// Allocator hands out the ordinals of one table. It is safe for concurrent
// use and holds no memory that grows with the rows, only with the ordinals that
// are free at the moment (8 bytes each).
type Allocator struct {
	next   atomic.Uint64 // high-water mark: first ordinal outside all ranges
	source atomic.Pointer[func() bool]
	_      [lineBytes - 16]byte
	depot  depot
	shards []shard
}

// shard is padded so that shards share no cache line.
type shard struct {
	shardState
	_ [lineBytes - unsafe.Sizeof(shardState{})%lineBytes]byte
}

type shardState struct {
	// fresh is the next ordinal of the shard's range. A range ends at a
	// multiple of rangeSize, so such a value means that it is used up. No
	// value comes back, because ranges are disjoint: a CAS cannot mistake it.
	fresh    atomic.Uint64
	recycled atomic.Int32 // len(freed.ordinals), to look without the mutex

	mu    sync.Mutex // guards freed and the change of range
	freed *magazine
}

// NewAllocator returns an allocator whose fresh ordinals start at next, or at 1
// if next is 0.
func NewAllocator(next uint64) *Allocator {
	a := &Allocator{shards: make([]shard, shardCount(runtime.GOMAXPROCS(0)))}
	a.next.Store(max(next, 1))
	return a
}

// shardCount leaves room for a few tasks a processor.
func shardCount(procs int) int { return min(maxShards, 1<<bits.Len(uint(2*procs-1))) }

// Alloc returns an ordinal that is not in use: a freed one if there is any,
// otherwise a fresh one. Callers with different shard numbers rarely disturb
// each other. It fails with fault.ErrNoSpace when all ordinals are in use.
func (a *Allocator) Alloc(shard uint32) (uint64, error) {
	s := &a.shards[shard&uint32(len(a.shards)-1)]
	if s.recycled.Load() == 0 && a.depot.count.Load() == 0 {
		if n := s.fresh.Load(); n%rangeSize != 0 && s.fresh.CompareAndSwap(n, n+1) {
			return n, nil
		}
	}
	return a.allocSlow(s)
}

func (a *Allocator) allocSlow(s *shard) (uint64, error) {
	s.mu.Lock()
	n, ok := a.reuse(s)
	if ok {
		s.mu.Unlock() // not deferred: that would double the time of this path
		return n, nil
	}
	defer s.mu.Unlock()
	for n = s.fresh.Load(); n%rangeSize != 0; n = s.fresh.Load() {
		if s.fresh.CompareAndSwap(n, n+1) {
			return n, nil
		}
	}
	if n, ok := a.fromSource(s); ok {
		return n, nil
	}
	if n, ok := a.steal(s); ok {
		return n, nil
	}
	n, err := a.takeRange()
	if err == nil {
		s.fresh.Store(n + 1) // others only CAS from values inside a range
	}
	return n, err
}

// reuse takes a freed ordinal. The caller holds s.mu.
func (a *Allocator) reuse(s *shard) (uint64, bool) {
	if s.recycled.Load() == 0 && !a.depot.exchange(&s.freed) {
		return 0, false
	}
	n := s.freed.pop()
	s.recycled.Store(int32(len(s.freed.ordinals)))
	return n, true
}

// SetSource has find called before the high-water mark is raised: it frees some
// more ordinals and reports whether it did, false for good.
func (a *Allocator) SetSource(find func() bool) { a.source.Store(&find) }

// fromSource takes an ordinal that the source has found, for this caller or for
// somebody else a moment ago. The caller holds s.mu.
func (a *Allocator) fromSource(s *shard) (uint64, bool) {
	find := a.source.Load()
	for more := find != nil; more; {
		more = (*find)()
		if n, ok := a.reuse(s); ok {
			return n, true
		}
		if !more {
			a.source.Store(nil)
		}
	}
	return 0, false
}

// steal takes the magazine of another shard, unless that shard is busy. The
// caller holds s.mu and has no freed ordinal.
func (a *Allocator) steal(s *shard) (uint64, bool) {
	for i := range a.shards {
		from := &a.shards[i]
		if from.recycled.Load() == 0 || !from.mu.TryLock() {
			continue
		}
		if from.recycled.Load() > 0 {
			s.freed, from.freed = from.freed, s.freed
			from.recycled.Store(0)
			s.recycled.Store(int32(len(s.freed.ordinals)))
		}
		from.mu.Unlock()
		if n, ok := a.reuse(s); ok {
			return n, true
		}
	}
	return 0, false
}

// takeRange returns the first ordinal of a range up to the next multiple of
// rangeSize; all of it belongs to the caller.
func (a *Allocator) takeRange() (uint64, error) {
	for {
		n := a.next.Load()
		if n > MaxOrdinal {
			return 0, fmt.Errorf("rowid: all %d ordinals of the table are in use: %w", uint64(MaxOrdinal), fault.ErrNoSpace)
		}
		if a.next.CompareAndSwap(n, n|(rangeSize-1)+1) {
			return n, nil
		}
	}
}

// Free gives an ordinal back. No row, version or index entry may name it any
// more, and it must not be free already. Ordinals found free after a restart
// enter the allocator through Free as well.
func (a *Allocator) Free(ordinal uint64) {
	if invariants.Enabled && (ordinal == 0 || ordinal >= a.HighWater()) {
		invariants.Fail("free of ordinal %d, high-water mark %d", ordinal, a.HighWater())
	}
	a.depot.put(ordinal)
}

// HighWater returns the first ordinal that was never handed out and is in no
// shard's range: every ordinal in use is below it.
func (a *Allocator) HighWater() uint64 { return a.next.Load() }

// InUse returns how many ordinals are handed out: exact while nobody calls
// Alloc or Free, and short of what FreeOrdinals has not found yet after a
// restart, which counts as in use.
func (a *Allocator) InUse() uint64 {
	free := a.depot.count.Load()
	for i := range a.shards {
		s := &a.shards[i]
		free += int64(s.recycled.Load())
		if rest := s.fresh.Load() % rangeSize; rest != 0 {
			free += int64(rangeSize - rest)
		}
	}
	return uint64(max(0, int64(a.HighWater())-1-free))
}

// Reserve raises the high-water mark to next; a lower value changes nothing.
// Replay calls it with one past each ordinal it sees. It comes before the first
// Alloc: ranges that shards own already are not taken back.
func (a *Allocator) Reserve(next uint64) {
	for n := a.next.Load(); n < next; n = a.next.Load() {
		if a.next.CompareAndSwap(n, next) {
			return
		}
	}
}
