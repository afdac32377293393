package arena

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
)

// TestReserve: each priority gets its part where the ones below get nothing, as
// often as it gives it back, whatever the others leave room for in between.
func TestReserve(t *testing.T) {
	const limit, kept = 8 * ChunkSize, 2 << 20
	a := newArena(t, Config{Limit: limit, Shards: 4})
	a.SetReserve(kept)
	for range 2 {
		rows := fillUp(t, a, 136)
		require.Greater(t, a.Stats().InUse, int64(limit-kept)*9/10)
		var taken [priorities][]Ref
		for p := Growth + 1; p < priorities; p++ {
			taken[p] = fillAt(t, a, p, 2000)
			require.GreaterOrEqual(t, len(taken[p])*2000, kept/4*8/10, "priority %d", p)
			require.Empty(t, fillUp(t, a, 136), "%d", p)
			require.Empty(t, fillUp(t, a, 2000), "the rest of spans of the reserve")
			validate(t, a)
		}
		for p, refs := range taken {
			freeAll(a, refs, 2000)
			if p < int(priorities)-1 {
				require.Empty(t, fillUp(t, a, 2000), "the reserve is not full again")
			}
		}
		freeAll(a, rows, 136)
		require.Zero(t, a.Stats().InUse)
		a.Trim()
		validate(t, a)
	}
}

func fillAt(t *testing.T, a *Arena, p Priority, size int) (refs []Ref) {
	for {
		r, err := a.Alloc(p.Shard(uint32(len(refs))), size)
		if err != nil {
			require.ErrorIs(t, err, fault.ErrMemoryLimit)
			return refs
		}
		refs = append(refs, r)
	}
}

// TestReserveHasRuns: however scattered the free pages are, there is room in the
// reserve for blocks of up to 4 KiB.
func TestReserveHasRuns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const limit = 6 * ChunkSize
	a := newArena(t, Config{Limit: limit, Shards: 2})
	a.SetReserve(limit / 16)
	m := &model{T: t, arena: a, rng: rng, stable: map[Ref]bool{}}
	for range 10 {
		for refused := 0; refused < 50; {
			if err := m.tryAlloc(); err != nil {
				require.ErrorIs(t, err, fault.ErrMemoryLimit)
				refused++
			}
		}
		for _, p := range []Priority{Collect, Shrink, Checkpoint} {
			for _, size := range []int{24, 2048, 4096} {
				r, err := a.Alloc(p.Shard(0), size)
				require.NoError(t, err, "priority %d, %d bytes", p, size)
				a.Free(0, r, size)
			}
		}
		for range rng.IntN(len(m.live)) {
			m.free()
		}
		m.check()
	}
}
