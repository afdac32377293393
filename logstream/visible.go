package logstream

import (
	"runtime"
	"sync/atomic"
	"time"
)

// ringSize bounds the commits between Reserve and Publish: more wait in
// Reserve until the oldest one is published.
const ringSize = 1 << 14

const (
	spinTries  = 64      // reads of the mark before the processor is given up
	yieldTries = 1 << 10 // times it is given up before the wait becomes a sleep
	spinSleep  = 50 * time.Microsecond
)

// visibleRing moves the visible mark in CTS order although commits are
// published in any order. Each publisher leaves its CTS in a slot of the ring
// and then moves the mark over all slots that are filled. Whoever fills the
// gap carries the mark on, because it stores its own slot before it reads the
// mark, and the one that stopped at the gap read the slot before that.
type visibleRing struct {
	mark  atomic.Uint64
	_     [120]byte // keeps the mark off the cache lines of the slots
	slots [ringSize]atomic.Uint64
}

func (r *visibleRing) publish(cts uint64) {
	r.slots[cts%ringSize].Store(cts)
	for {
		v := r.mark.Load()
		if r.slots[(v+1)%ringSize].Load() != v+1 {
			return
		}
		r.mark.CompareAndSwap(v, v+1)
	}
}

// hasRoom reports whether the slot of cts is free.
func (r *visibleRing) hasRoom(cts uint64) bool { return cts-r.mark.Load() <= ringSize }

// wait returns when cts is visible. Everybody before it only copies memory,
// but may have been descheduled while doing so.
func (r *visibleRing) wait(cts uint64) {
	for tries := 0; r.mark.Load() < cts; tries++ {
		switch {
		case tries < spinTries:
		case tries < yieldTries:
			runtime.Gosched()
		default:
			time.Sleep(spinSleep) // it is long: let the descheduled one run
		}
	}
}
