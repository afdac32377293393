package chainindex

import (
	"sync"

	"github.com/cespare/xxhash/v2"
)

const latchCount = 256 // a power of two

// latches are the latches of all keys; some keys share one. They are taken
// before any latch of a tree and one at a time.
type latches [latchCount]struct {
	sync.Mutex
	_ [64 - 8]byte // a cache line each
}

func (l *latches) of(key []byte) *sync.Mutex {
	return &l[xxhash.Sum64(key)%latchCount].Mutex
}
