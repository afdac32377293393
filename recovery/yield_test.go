package recovery

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSortYielding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 1023, 1024, 1025, 2048, 5000, 10_241} {
		items := make([]int, n)
		for i := range items {
			items[i] = rng.IntN(n)
		}
		want := slices.Sorted(slices.Values(items))
		got := sortYielding(items, cmp.Compare[int])
		if n == 0 {
			require.Empty(t, got)
			continue
		}
		require.Equal(t, want, got)
	}
}
