package indirection

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSortByPage(t *testing.T) {
	rng := newRand(t)
	for _, space := range []uint64{1, 1 << 9, 1 << 12, 1 << 20, 1 << 21, 1 << 31, 1 << 32, 1 << 48} {
		for _, n := range []int{0, 1, 2, radixLeast - 1, radixLeast, 5000} {
			changes := make([]Change, n)
			for i := range changes {
				changes[i] = Change{Ordinal: 1<<48 - space + rng.Uint64N(space), Word: Word(i)}
			}
			want := slices.Clone(changes)
			slices.SortStableFunc(want, func(a, b Change) int { return cmp.Compare(a.Ordinal>>pageShift, b.Ordinal>>pageShift) })
			sortByPage(changes)
			require.Equal(t, want, changes)
		}
	}
}
