package rebuild

import "sync"

// latchShards is how many readers' locks there are, a power of two. Each more
// costs every write some 10 ns.
const latchShards = 4

// latch is a reader-writer lock whose readers meet only within a shard.
type latch struct {
	shards [latchShards]struct {
		sync.RWMutex
		_ [128 - 24]byte // a pair of cache lines, which are fetched together
	}
}

func (l *latch) RLock(shard uint32)   { l.shards[shard%latchShards].RLock() }
func (l *latch) RUnlock(shard uint32) { l.shards[shard%latchShards].RUnlock() }

// Lock takes the shards in order, so that two writers cannot deadlock.
func (l *latch) Lock() {
	for i := range l.shards {
		l.shards[i].Lock()
	}
}

func (l *latch) Unlock() {
	for i := range l.shards {
		l.shards[i].Unlock()
	}
}
