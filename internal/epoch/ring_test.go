package epoch

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
)

func TestRingAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var q ring
	var model []retired
	epoch, next := uint64(1)<<32-50, arena.Ref(8) // the low half wraps around
	for range 300 {
		for range rng.IntN(200) {
			r := retired{ref: next, size: rng.Uint32(), epoch: uint32(epoch)}
			q.push(r)
			model = append(model, r)
			next += 8
		}
		epoch += rng.Uint64N(3)
		for range rng.IntN(8) {
			model = popBoth(t, &q, model, epoch, rng.IntN(64))
		}
		q.shrink()
		require.Equal(t, len(model), q.count)
	}
}

func popBoth(t *testing.T, q *ring, model []retired, epoch uint64, most int) []retired {
	dst := make([]retired, most)
	n := q.popDue(epoch, dst)
	due := 0
	for due < len(model) && due < most && uint32(epoch)-model[due].epoch >= 2 {
		due++
	}
	require.Equal(t, model[:due], dst[:n])
	return model[due:]
}

func TestRingGivesMemoryBack(t *testing.T) {
	var q ring
	for i := range 100_000 {
		q.push(retired{ref: arena.Ref(i)})
	}
	for range 20 {
		q.popDue(2, make([]retired, 10_000))
		q.shrink()
	}
	require.Zero(t, q.count)
	require.LessOrEqual(t, len(q.slots), keepSlots)
}
