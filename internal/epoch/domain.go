package epoch

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// Domain is the set of handles whose pins protect the blocks of one arena. All
// methods except Close may be called concurrently.
type Domain struct {
	arena   *arena.Arena
	handles atomic.Pointer[[]*Handle]
	_       [lineSize]byte
	global  atomic.Uint64
	_       [lineSize]byte

	mu       sync.Mutex // guards changes to handles, and deferred
	deferred []deferred
}

// deferred is a function that waits for the pins of an epoch to end.
type deferred struct {
	run   func()
	epoch uint64
}

// Stats says what waits in a domain.
type Stats struct {
	Epoch    uint64
	Handles  int
	Retired  int // blocks retired and not yet freed
	Deferred int // functions deferred and not yet run
}

// NewDomain returns a domain that frees blocks of a.
func NewDomain(a *arena.Arena) *Domain {
	d := &Domain{arena: a}
	d.global.Store(1)
	d.handles.Store(new([]*Handle))
	return d
}

// Register returns a new handle: one for each pooled transaction object or
// worker, reused for ever.
func (d *Domain) Register() *Handle {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := *d.handles.Load()
	h := &Handle{domain: d, shard: uint32(len(old))}
	// Readers of the old slice do not look beyond its length, so the array
	// behind it can be shared.
	handles := append(old, h)
	d.handles.Store(&handles)
	return h
}

// advance moves the epoch on by one, unless a pin is in an older one. It
// returns false in that case.
func (d *Domain) advance() bool {
	g := d.global.Load() // before the handles: see the proof
	for _, h := range *d.handles.Load() {
		if e := h.pinned.Load(); e != 0 && e != g {
			return false
		}
	}
	d.global.CompareAndSwap(g, g+1) // else another goroutine did it
	return true
}

// tryInterval is how many blocks a handle retires before it looks at all
// handles: enough of them to make the look cheap.
func (d *Domain) tryInterval() int { return max(minTry, 4*len(*d.handles.Load())) }

// Reclaim frees the retired blocks and runs the deferred functions whose pins
// have ended, and returns the number of blocks freed. A background goroutine
// calls it now and then, for the sake of handles that have become idle.
func (d *Domain) Reclaim() int {
	for range 2 {
		if !d.advance() {
			break
		}
	}
	return d.collect()
}

// collect is Reclaim in the present epoch.
func (d *Domain) collect() int {
	now := d.global.Load()
	freed := 0
	for _, h := range *d.handles.Load() {
		freed += h.reclaim(now)
	}
	for _, f := range d.popDeferred(now) {
		f.run()
	}
	return freed
}

// Defer runs f when every pin that exists now has ended: in a later Reclaim or
// in Close, on the goroutine that calls it, with no lock held. f may use the
// domain.
func (d *Domain) Defer(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deferred = append(d.deferred, deferred{run: f, epoch: d.global.Load()})
}

// popDeferred removes and returns the functions that are due. They are in the
// order of their epochs.
func (d *Domain) popDeferred(now uint64) []deferred {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for n < len(d.deferred) && d.deferred[n].epoch+2 <= now {
		n++
	}
	if n == 0 {
		return nil
	}
	due := d.deferred[:n]
	d.deferred = append([]deferred(nil), d.deferred[n:]...)
	return due
}

// Barrier waits until every pin that exists now has ended. The caller must not
// be pinned. The error is that of ctx.
func (d *Domain) Barrier(ctx context.Context) error {
	target := d.global.Load() + 2
	for try := 0; d.global.Load() < target; {
		if d.advance() {
			continue
		}
		if err := pause(ctx, try); err != nil {
			return fmt.Errorf("epoch: wait for pins: %w", err)
		}
		try++
	}
	return nil
}

// pause spins, then yields, then sleeps longer and longer up to 1 ms.
func pause(ctx context.Context, try int) error {
	const spins, yields = 64, 64
	switch {
	case try < spins:
		return nil
	case try < spins+yields:
		runtime.Gosched()
		return ctx.Err()
	}
	timer := time.NewTimer(min(time.Duration(try-spins-yields+1)*10*time.Microsecond, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Close frees everything retired and runs everything deferred, including what
// that retires and defers. No pin exists or begins any more.
func (d *Domain) Close() {
	if invariants.Enabled {
		d.checkUnpinned()
	}
	for st := d.Stats(); st.Retired+st.Deferred > 0; st = d.Stats() {
		d.global.Add(2)
		d.collect()
	}
}

func (d *Domain) checkUnpinned() {
	for _, h := range *d.handles.Load() {
		if h.Pinned() {
			invariants.Fail("handle %d is pinned while the domain is closed", h.shard)
		}
	}
}

// Stats returns the present state.
func (d *Domain) Stats() Stats {
	handles := *d.handles.Load()
	st := Stats{Epoch: d.global.Load(), Handles: len(handles)}
	for _, h := range handles {
		st.Retired += h.waiting()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Deferred = len(d.deferred)
	return st
}
