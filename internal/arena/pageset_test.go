package arena

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPageSetAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var set pageSet
		var model [pagesPerChunk]bool
		for range rng.IntN(12) {
			first := rng.IntN(pagesPerChunk)
			n := rng.IntN(pagesPerChunk - first + 1)
			if add := rng.IntN(2) == 0; add {
				set.addRun(first, n)
				fill(model[first:first+n], true)
			} else {
				set.removeRun(first, n)
				fill(model[first:first+n], false)
			}
		}
		comparePageSet(t, &set, &model)
	}
}

func fill(b []bool, v bool) {
	for i := range b {
		b[i] = v
	}
}

func comparePageSet(t *testing.T, set *pageSet, model *[pagesPerChunk]bool) {
	starts := map[int]int{} // first run of at least this length
	run := 0
	for i, in := range model {
		if !in {
			run = 0
			continue
		}
		run++
		if _, ok := starts[run]; !ok {
			starts[run] = i - run + 1
		}
	}
	require.Equal(t, len(starts), set.longest())
	for n, first := range starts {
		require.Equal(t, first, set.findRun(n))
	}
	for from := range pagesPerChunk {
		require.Equal(t, search(model, from, true), set.next(from))
		require.Equal(t, search(model, from, false), set.nextGap(from))
	}
}

func search(model *[pagesPerChunk]bool, from int, v bool) int {
	for from < pagesPerChunk && model[from] != v {
		from++
	}
	return from
}
