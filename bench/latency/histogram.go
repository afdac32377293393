// Package latency counts durations in buckets, so that quantiles of millions of
// them take a few kilobytes.
package latency

import (
	"math/bits"
	"time"
)

// Durations below 2·steps ns have a bucket each; above, each power of two has
// steps buckets of equal width, so a quantile is at most 1/steps too large.
const (
	stepBits = 6
	steps    = 1 << stepBits
	buckets  = (64 - stepBits) * steps
)

// Histogram counts durations. The zero value is empty. It is for one goroutine.
type Histogram struct {
	counts [buckets]uint64
	total  uint64
}

// Record counts one duration, a negative one as zero.
func (h *Histogram) Record(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

// Count returns the number of durations recorded.
func (h *Histogram) Count() uint64 { return h.total }

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range &o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// Quantile returns the duration that the share q of all durations, in (0, 1],
// does not pass, rounded up to its bucket's end; 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	if float64(rank) < q*float64(h.total) {
		rank++
	}
	var seen uint64
	for i, n := range &h.counts {
		if seen += n; n > 0 && seen >= rank {
			return time.Duration(last(i))
		}
	}
	return 0
}

func bucket(ns uint64) int {
	shift := max(0, bits.Len64(ns)-stepBits-1)
	return shift*steps + int(ns>>shift)
}

// last returns the largest duration of a bucket, in ns.
func last(bucket int) uint64 {
	shift := max(0, bucket/steps-1)
	return (uint64(bucket-shift*steps)+1)<<shift - 1
}
