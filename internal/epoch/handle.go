package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/invariants"
)

const (
	lineSize   = 128 // bytes that keep two fields off each other's cache lines, fetched in pairs
	perRetire  = 4   // blocks that one Retire frees at most
	perReclaim = 64  // blocks that Reclaim takes from a ring at once
	minTry     = 64  // retirements between two attempts to advance
)

// Handle pins epochs and retires blocks for one user at a time. It belongs to
// its domain for ever; an idle one costs a few hundred bytes and one read per
// advance.
type Handle struct {
	// What every pin touches; others only read the first.
	pinned atomic.Uint64 // epoch, 0 = not pinned
	domain *Domain
	shard  uint32
	yield  bool // an attempt to advance has failed
	_      [lineSize]byte

	// The retired blocks.
	mu    sync.Mutex // never held together with another lock
	ring  ring
	quiet int // retirements until the next attempt to advance
	_     [lineSize]byte
}

// Pin keeps alive every block that can be reached from now on, until Unpin.
// Pins do not nest. They are for one operation or one step of a scan: not for
// user code, waiting or reading files, because all reclamation waits for them.
func (h *Handle) Pin() {
	if invariants.Enabled && h.Pinned() {
		invariants.Fail("handle %d is pinned twice", h.shard)
	}
	e := h.domain.global.Load()
	h.pinned.Store(e)
	if h.domain.global.Load() != e {
		h.repin()
	}
}

// repin is the rest of Pin when the epoch advanced in between.
func (h *Handle) repin() {
	for {
		e := h.domain.global.Load()
		h.pinned.Store(e)
		if h.domain.global.Load() == e {
			return
		}
	}
}

// Unpin ends what Pin began: no block reached since may be used any more. It
// may let other goroutines run, so the caller holds no latch.
func (h *Handle) Unpin() {
	if invariants.Enabled && !h.Pinned() {
		invariants.Fail("handle %d is unpinned without a pin", h.shard)
	}
	h.pinned.Store(0)
	if h.yield {
		h.makeWay()
	}
}

// makeWay lets other goroutines run after an attempt to advance has failed.
// With more busy goroutines than processors, some are always preempted while
// pinned and wait for a turn: for a second, if all others use up their time
// slices. (64 goroutines on two processors, 600,000 retirements a second: with
// this, 70,000 instead of 1.2 million blocks waited, at the same speed.)
func (h *Handle) makeWay() {
	h.yield = false
	runtime.Gosched()
}

// Pinned tells whether the handle is pinned.
func (h *Handle) Pinned() bool { return h.pinned.Load() != 0 }

// Shard is the handle's number with its priority, to be passed to the arena.
func (h *Handle) Shard() uint32 { return h.shard }

// SetPriority says what the memory is for that the handle's user takes from now on:
// arena.Growth at first.
func (h *Handle) SetPriority(p arena.Priority) { h.shard = p.Shard(h.shard) }

// Retire frees a block of the arena, allocated with the size, once no pin that
// exists now can hold it. The caller has just made it unreachable for pins
// that begin later, and is the only one to retire it. The handle need not be
// pinned. Retire may free older blocks, but never waits.
func (h *Handle) Retire(r arena.Ref, size int) {
	if invariants.Enabled && (r == 0 || size < 0 || size > arena.MaxBlock) {
		invariants.Fail("block %#x of %d bytes is retired", uint64(r), size)
	}
	now := h.domain.global.Load()
	var due [perRetire]retired
	h.mu.Lock()
	h.ring.push(retired{ref: r, size: uint32(size), epoch: uint32(now)})
	n := h.ring.popDue(now, due[:])
	h.quiet--
	try := h.quiet < 0
	if try {
		h.quiet = h.domain.tryInterval()
	}
	h.mu.Unlock()
	h.free(due[:n])
	if try && !h.domain.advance() {
		h.yield = true
	}
}

// reclaim frees what is due in epoch now and returns the number of blocks.
func (h *Handle) reclaim(now uint64) int {
	var due [perReclaim]retired
	for total := 0; ; {
		h.mu.Lock()
		n := h.ring.popDue(now, due[:])
		h.ring.shrink()
		h.mu.Unlock()
		h.free(due[:n])
		total += n
		if n < len(due) {
			return total
		}
	}
}

func (h *Handle) free(blocks []retired) {
	for _, b := range blocks {
		h.domain.arena.Free(0, b.ref, int(b.size))
	}
}

// waiting is the number of blocks that are retired and not yet freed.
func (h *Handle) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ring.count
}
