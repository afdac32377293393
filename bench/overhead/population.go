package overhead

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/rekindledb/rekindle/bench/dataset"
)

// population knows which rows are there, by their numbers: those from oldest to
// before next. It is safe for concurrent use.
type population struct {
	oldest, next atomic.Uint64
	margin       uint64 // rows at both ends that may be there or not
}

// maxMargin is more rows than are inserted while one transaction runs.
const maxMargin = 1 << 14

func newPopulation(rows uint64) *population {
	p := &population{margin: min(rows/4, maxMargin)}
	p.next.Store(rows)
	return p
}

// random returns the key of a row that is there, unless the caller stands still
// while maxMargin rows are replaced.
func (p *population) random(rng *rand.Rand) uint64 {
	from := p.oldest.Load() + p.margin
	to := p.next.Load() - p.margin
	return dataset.Key(from + rng.Uint64N(to-from))
}

// replace returns the keys of a row to insert and of one to delete instead.
func (p *population) replace() (insert, remove uint64) {
	return dataset.Key(p.next.Add(1) - 1), dataset.Key(p.oldest.Add(1) - 1)
}
