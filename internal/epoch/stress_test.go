package epoch

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rekindledb/rekindle/internal/arena"
)

// stress is a set of slots, each naming a block. Writers replace blocks and
// retire the old ones; readers check that a block they reached stays what it
// was until they unpin.
type stress struct {
	*testing.T
	arena  *arena.Arena
	domain *Domain
	slots  [16]atomic.Uint64
	reads  atomic.Int64
}

// fill writes words that depend on each other and on the block's address.
func (s *stress) fill(r arena.Ref, tag uint64) {
	s.arena.Word(r).Store(tag)
	words := s.words(r)
	for i := range words {
		words[i] = tag ^ uint64(r) + uint64(i)
	}
}

func (s *stress) words(r arena.Ref) *[blockSize/8 - 1]uint64 {
	return (*[blockSize/8 - 1]uint64)(s.arena.Pointer(r + 8))
}

func (s *stress) read(h *Handle, rng *rand.Rand) {
	h.Pin()
	defer h.Unpin()
	r := arena.Ref(s.slots[rng.IntN(len(s.slots))].Load())
	tag := s.arena.Word(r).Load()
	for range 1 + rng.IntN(3) {
		for i, w := range s.words(r) {
			if w != tag^uint64(r)+uint64(i) {
				s.Errorf("word %d of block %#x is %#x, tag %#x", i, r, w, tag)
				return
			}
		}
	}
	s.reads.Add(1)
}

func (s *stress) replace(h *Handle, rng *rand.Rand) {
	r := alloc(s, s.arena, h)
	s.fill(r, rng.Uint64())
	h.Pin()
	defer h.Unpin()
	slot := &s.slots[rng.IntN(len(s.slots))]
	h.Retire(arena.Ref(slot.Swap(uint64(r))), blockSize)
}

func TestReadersNeverSeeReuse(t *testing.T) {
	const writers, readers, steps = 2, 2, 30_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d, a := newDomain(t)
	s := &stress{T: t, arena: a, domain: d}
	h := d.Register()
	for i := range s.slots {
		r := alloc(t, a, h)
		s.fill(r, uint64(i))
		s.slots[i].Store(uint64(r))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var write, rest sync.WaitGroup
	for id := range uint64(writers) {
		write.Go(func() {
			h, rng := d.Register(), rand.New(rand.NewPCG(seed, id))
			for i := 0; i < steps || s.reads.Load() < steps/10; i++ {
				s.replace(h, rng)
			}
		})
	}
	for id := range uint64(readers) {
		rest.Go(func() {
			h, rng := d.Register(), rand.New(rand.NewPCG(seed, writers+id))
			for ctx.Err() == nil {
				s.read(h, rng)
			}
		})
	}
	rest.Go(func() { s.disturb(ctx) })
	write.Wait()
	cancel()
	rest.Wait()
	for i := range s.slots {
		h.Retire(arena.Ref(s.slots[i].Load()), blockSize)
	}
}

// disturb reclaims, waits, defers and registers beside the others.
func (s *stress) disturb(ctx context.Context) {
	ran := 0
	for i := 0; ctx.Err() == nil; i++ {
		s.domain.Reclaim()
		if i%16 == 0 && i < 1024 {
			s.domain.Defer(func() { ran++ })
			s.domain.Register()
		}
		if err := s.domain.Barrier(ctx); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	}
}
