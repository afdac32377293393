package btree

import "sync/atomic"

const countShards = 16 // a power of two

// counters are sums kept apart by shard, so that writers do not meet.
type counters struct {
	shards [countShards]struct {
		entries atomic.Int64
		nodes   atomic.Int64
		_       [128 - 16]byte // a pair of cache lines, which are fetched together
	}
}

func (c *counters) add(shard uint32, entries, nodes int64) {
	s := &c.shards[shard%countShards]
	if entries != 0 {
		s.entries.Add(entries)
	}
	if nodes != 0 {
		s.nodes.Add(nodes)
	}
}

func (c *counters) sum() (entries, nodes int64) {
	for i := range c.shards {
		entries += c.shards[i].entries.Load()
		nodes += c.shards[i].nodes.Load()
	}
	return entries, nodes
}
