package tpcc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLastNameSpellsDigits(t *testing.T) {
	require.Equal(t, "BARBARBAR", lastName(0))
	require.Equal(t, "PRICALLYOUGHT", lastName(371))
	require.Equal(t, "EINGEINGEING", lastName(999))
}

func TestNURandCoversItsRangeUnevenly(t *testing.T) {
	r := newRandom(1, 0)
	const draws, lo, hi = 90_000, 1, 3000
	counts := make([]int, hi+1)
	for range draws {
		v := r.nuRand(nuCustomer, 259, lo, hi)
		require.GreaterOrEqual(t, v, lo)
		require.LessOrEqual(t, v, hi)
		counts[v]++
	}
	const mean = draws / hi
	hot := 0
	for _, n := range counts[lo:] {
		if n > 2*mean {
			hot++
		}
	}
	require.Greater(t, hot, hi/20, "a uniform distribution has no value of twice the mean")
	require.Less(t, hot, hi/2)
}

func TestNURandWithANarrowRange(t *testing.T) {
	r := newRandom(2, 0)
	seen := map[int]bool{}
	for range 1000 {
		seen[r.nuRand(nuItem, 7911, 1, 5)] = true
	}
	require.Len(t, seen, 5)
	require.True(t, seen[1] && seen[5])
}

func TestRunConstantsKeepTheirDistance(t *testing.T) {
	for seed := range uint64(500) {
		load := LoadConstants(seed)
		run := RunConstants(seed+7, load)
		delta := max(load.Last-run.Last, run.Last-load.Last)
		require.GreaterOrEqual(t, delta, 65, "seed %d", seed)
		require.LessOrEqual(t, delta, 119, "seed %d", seed)
		require.NotContains(t, []int{96, 112}, delta, "seed %d", seed)
		require.Equal(t, run, RunConstants(seed+7, load), "constants depend on the seed alone")
	}
}

func TestTextLengthsAndAlphabets(t *testing.T) {
	r := newRandom(3, 0)
	lengths := map[int]bool{}
	for range 500 {
		s := r.alpha(3, 5)
		lengths[len(s)] = true
		require.Regexp(t, `^[A-Za-z0-9]{3,5}$`, s)
		require.Regexp(t, `^[0-9]{16}$`, r.number(16, 16))
		require.Regexp(t, `^[0-9]{4}11111$`, r.address().Zip)
	}
	require.Len(t, lengths, 3)
}

func TestTenPercentOfDataIsOriginal(t *testing.T) {
	r := newRandom(4, 0)
	n := 0
	for range 20_000 {
		s := r.data()
		require.GreaterOrEqual(t, len(s), 26)
		require.LessOrEqual(t, len(s), 50)
		if isOriginal(s) {
			n++
		}
	}
	require.InDelta(t, 2000, n, 250)
}
