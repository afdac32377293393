package arena

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/invariants"
)

// TestStress passes blocks between goroutines, which check and free what
// others allocated.
func TestStress(t *testing.T) {
	const workers = 4
	steps := 20_000
	if invariants.Enabled {
		steps = 3_000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := newArena(t, Config{Shards: 4})
	exchange := make(chan block, 512)
	var wg sync.WaitGroup
	for id := range uint32(workers) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(id)))
			for range steps {
				stressStep(t, a, id, rng, exchange)
			}
		})
	}
	wg.Wait()
	close(exchange)
	for b := range exchange {
		a.Free(0, b.ref, b.size)
	}
	require.Zero(t, a.Stats().InUse)
	require.Zero(t, a.Stats().Requested)
	validate(t, a)
}

func stressStep(t *testing.T, a *Arena, shard uint32, rng *rand.Rand, exchange chan block) {
	size := []int{48, 136, 200, 2048, 4096, 20 << 10}[rng.IntN(6)]
	r, err := a.Alloc(shard, size)
	if err != nil {
		t.Error(err)
		return
	}
	b := block{ref: r, size: size, tag: rng.Uint64()}
	b.write(a)
	select {
	case exchange <- b:
	default:
		check(t, a, shard, b)
		for range rng.IntN(64) {
			select {
			case other := <-exchange:
				check(t, a, shard, other)
			default:
			}
		}
	}
}

func check(t *testing.T, a *Arena, shard uint32, b block) {
	if !b.intact(a) {
		t.Errorf("block of %d bytes at %#x was overwritten", b.size, b.ref)
	}
	a.Free(shard, b.ref, b.size)
}
