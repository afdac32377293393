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
	runs := map[int]int{} // first run of this length
	longest, inRuns := 0, 0
	for i := 0; i < pagesPerChunk; {
		end := search(model, i, false)
		if n := end - i; n > 0 {
			if _, ok := runs[n]; !ok {
				runs[n] = i
			}
			longest = max(longest, n)
			if n >= minRun {
				inRuns += n
			}
		}
		i = search(model, end, true)
	}
	require.Equal(t, longest, set.longest())
	require.Equal(t, inRuns, set.inRuns())
	first := 0
	for n := longest; n > 0; n-- {
		if at, ok := runs[n]; ok {
			first = at
		}
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
