package overhead

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/rekindledb/rekindle/bench/dataset"
)

// population knows which rows are there. Every client owns a share of them,
// which it alone inserts and deletes, so that no client waits for another one.
// It is safe for concurrent use.
type population struct {
	shares []share
	margin uint64 // rows at both ends of a share that may be there or not
}

// share is the rows of a client: from the oldest to before the next. The i-th
// row of client c has the number i·clients + c.
type share struct{ oldest, next atomic.Uint64 }

// maxMargin is more rows than a client replaces while a transaction runs.
const maxMargin = 1 << 12

// newPopulation distributes the rows 0 to rows-1, at least minShare a client.
func newPopulation(rows, clients uint64) *population {
	p := &population{shares: make([]share, clients), margin: min(rows/clients/4, maxMargin)}
	for c := range p.shares {
		p.shares[c].next.Store((rows + clients - 1 - uint64(c)) / clients)
	}
	return p
}

// minShare leaves room between the rows that are deleted and those that are
// inserted.
const minShare = 8

func (p *population) key(client int, row uint64) uint64 {
	return dataset.Key(row*uint64(len(p.shares)) + uint64(client))
}

// random returns the key of a row that is there, unless the caller stands still
// while its owner replaces many.
func (p *population) random(rng *rand.Rand) uint64 {
	c := rng.IntN(len(p.shares))
	s := &p.shares[c]
	from := s.oldest.Load() + p.margin
	return p.key(c, from+rng.Uint64N(s.next.Load()-p.margin-from))
}

// replace returns the keys of a row to insert and of one to delete instead, for
// the client.
func (p *population) replace(client int) (insert, remove uint64) {
	s := &p.shares[client]
	return p.key(client, s.next.Add(1)-1), p.key(client, s.oldest.Add(1)-1)
}
