package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucketsAreWithoutGap(t *testing.T) {
	require.Zero(t, bucket(0))
	for i := range buckets - 1 {
		require.Equal(t, i, bucket(last(i)))
		require.Equal(t, i+1, bucket(last(i)+1))
	}
	require.Equal(t, buckets-1, bucket(math.MaxInt64))
}

func TestQuantilesOfRandomDurations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var h, part Histogram
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * 1e5)
		all = append(all, d)
		part.Record(d)
	}
	h.Merge(&part)
	slices.Sort(all)
	require.EqualValues(t, len(all), h.Count())
	for _, q := range []float64{0.0001, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[int(math.Ceil(q*float64(len(all))))-1]
		got := h.Quantile(q)
		require.GreaterOrEqual(t, got, exact, "q %v", q)
		require.LessOrEqual(t, float64(got), float64(exact)*(1+1.0/steps)+1, "q %v", q)
	}
}

func TestEmptyAndNegative(t *testing.T) {
	var h Histogram
	require.Zero(t, h.Quantile(0.5))
	h.Record(-time.Second)
	require.Zero(t, h.Quantile(1))
	require.EqualValues(t, 1, h.Count())
}
