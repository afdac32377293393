// Package epoch decides when a block that was unlinked may be reused.
package epoch

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/internal/arena"
)

// Domain is one arena's set of handles and its global epoch.
type Domain struct {
	arena   *arena.Arena
	global  atomic.Uint64
	mu      sync.Mutex
	handles []*Handle
	retired []retired
	defers  []deferred
}

type retired struct {
	ref   arena.Ref
	size  int
	epoch uint64
}

type deferred struct {
	run   func()
	epoch uint64
}

// Handle pins epochs for one user at a time.
type Handle struct {
	domain *Domain
	shard  uint32
	pinned atomic.Uint64
}

// NewDomain returns a domain that frees into a.
func NewDomain(a *arena.Arena) *Domain {
	d := &Domain{arena: a}
	d.global.Store(1)
	return d
}

// Register returns a new handle, one per pooled transaction object or worker.
func (d *Domain) Register() *Handle {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &Handle{domain: d, shard: uint32(len(d.handles))}
	d.handles = append(d.handles, h)
	return h
}

// Pin holds back the reuse of every block that can be reached from now on.
func (h *Handle) Pin() {
	for {
		e := h.domain.global.Load()
		h.pinned.Store(e)
		if h.domain.global.Load() == e {
			return
		}
	}
}

// Unpin ends what Pin began.
func (h *Handle) Unpin() { h.pinned.Store(0) }

// Pinned tells whether the handle is pinned.
func (h *Handle) Pinned() bool { return h.pinned.Load() != 0 }

// Shard is the handle's shard of the arena.
func (h *Handle) Shard() uint32 { return h.shard }

// Retire frees the block once no pin older than now can hold it.
func (h *Handle) Retire(r arena.Ref, size int) {
	d := h.domain
	d.mu.Lock()
	d.retired = append(d.retired, retired{r, size, d.global.Load()})
	n := len(d.retired)
	d.mu.Unlock()
	if n%64 == 0 {
		d.Reclaim()
	}
}

// Defer runs f from a later Reclaim, when every pin that exists now has ended.
func (d *Domain) Defer(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.defers = append(d.defers, deferred{f, d.global.Load()})
}

func (d *Domain) advance() {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.global.Load()
	for _, h := range d.handles {
		if e := h.pinned.Load(); e != 0 && e != g {
			return
		}
	}
	d.global.Store(g + 1)
}

// Reclaim frees and runs what has become due.
func (d *Domain) Reclaim() {
	d.advance()
	d.collect(d.global.Load())
}

func (d *Domain) collect(now uint64) {
	d.mu.Lock()
	i, j := 0, 0
	for i < len(d.retired) && d.retired[i].epoch+2 <= now {
		d.arena.Free(0, d.retired[i].ref, d.retired[i].size)
		i++
	}
	d.retired = d.retired[i:]
	for j < len(d.defers) && d.defers[j].epoch+2 <= now {
		j++
	}
	due := d.defers[:j:j]
	d.defers = d.defers[j:]
	d.mu.Unlock()
	for _, f := range due {
		f.run()
	}
}

// Barrier waits until every pin that exists now has ended. The caller must
// not be pinned.
func (d *Domain) Barrier(ctx context.Context) error {
	target := d.global.Load() + 2
	for i := 0; ; i++ {
		d.advance()
		if d.global.Load() >= target {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if i < 64 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// Close frees everything retired and runs everything deferred. No pins exist
// and none begins any more.
func (d *Domain) Close() {
	for len(d.retired)+len(d.defers) > 0 {
		d.collect(d.global.Load() + 2)
	}
}
