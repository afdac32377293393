package txn

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// keptTombstones is how many deletes fit in memory beyond the limit at a time:
// those of one transaction, and those that the collector has not got to.
const keptTombstones = 4096

// tombstones keeps blocks back for deletes, so that a database at its memory
// limit can still be made smaller. It is filled before the first row is
// inserted and again by deletes that find memory.
type tombstones struct {
	wanted atomic.Bool
	mu     sync.Mutex
	blocks []arena.Ref
}

// keepBack fills the stock if it is not full. The lack of memory is no failure
// here: those who need it will meet it.
func (k *tombstones) keepBack(a *arena.Arena, shard uint32, most int) {
	if !k.wanted.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for range most {
		if len(k.blocks) == keptTombstones {
			k.wanted.Store(false)
			return
		}
		ref, err := a.Alloc(shard, headerBytes)
		if err != nil {
			return
		}
		k.blocks = append(k.blocks, ref)
	}
}

// take returns a block of headerBytes, 0 if there is none.
func (k *tombstones) take() arena.Ref {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := len(k.blocks) - 1
	if last < 0 {
		return 0
	}
	k.wanted.Store(true)
	ref := k.blocks[last]
	k.blocks = k.blocks[:last]
	return ref
}

// allocTombstone finds room for a tombstone, beyond the memory limit too.
func (s *session) allocTombstone() (arena.Ref, error) {
	ref, err := s.m.Arena.Alloc(s.h.Shard(), headerBytes)
	switch {
	case err == nil:
		s.m.tombstones.keepBack(s.m.Arena, s.h.Shard(), 1)
	case errors.Is(err, fault.ErrMemoryLimit):
		if kept := s.m.tombstones.take(); kept != 0 {
			return kept, nil
		}
	}
	return ref, err
}
