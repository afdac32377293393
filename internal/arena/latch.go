package arena

import (
	"runtime"
	"sync/atomic"
)

// latch is a lock for sections of some ten instructions. It spins, because
// parking takes longer than the section, but yields in the end, because the
// holder may have been preempted.
type latch struct{ held atomic.Uint32 }

const spins = 64

func (l *latch) lock() {
	if !l.tryLock() {
		l.lockSlow()
	}
}

func (l *latch) tryLock() bool { return l.held.CompareAndSwap(0, 1) }

func (l *latch) unlock() { l.held.Store(0) }

func (l *latch) lockSlow() {
	for i := 1; l.held.Load() != 0 || !l.tryLock(); i++ {
		if i%spins == 0 {
			runtime.Gosched()
		}
	}
}
