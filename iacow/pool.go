package iacow

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
)

// pool keeps the blocks that are not in use. Address hints may lead to a block as
// long as the tree lives, so it is a stable one (arena.AllocStable). The list is in
// the blocks themselves.
type pool struct {
	arena *arena.Arena
	held  atomic.Int64 // blocks taken from the arena

	mu    sync.Mutex
	first arena.Ref
	count int64
}

var _ = [1]struct{}{}[blockBytes-arena.StableBlock]

func (p *pool) block(ref arena.Ref) unsafe.Pointer { return p.arena.Pointer(ref) }

// NewBlock prefers blocks that were nodes before.
func (p *pool) NewBlock(shard uint32) (arena.Ref, error) {
	if ref := p.take(); ref != 0 {
		return ref, nil
	}
	ref, err := p.arena.AllocStable(shard)
	if err != nil {
		return 0, err
	}
	p.held.Add(1)
	btree.InitBlock(p.block(ref))
	return ref, nil
}

func (p *pool) take() arena.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := p.first
	if ref != 0 {
		p.first = btree.Chained(p.block(ref))
		p.count--
	}
	return ref
}

// FreeBlock takes back a block. Readers that still look at it will notice.
func (p *pool) FreeBlock(_ uint32, ref arena.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	btree.Chain(p.block(ref), p.first)
	p.first = ref
	p.count++
}

// takeSurplus takes blocks that are not in use until no more than keep are left. It
// returns them chained.
func (p *pool) takeSurplus(keep int64) (first arena.Ref) {
	for p.unused() > keep {
		ref := p.take()
		if ref == 0 {
			break
		}
		btree.Chain(p.block(ref), first)
		first = ref
	}
	return first
}

// unused is the number of blocks not in use.
func (p *pool) unused() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// giveBack gives a block back to the arena, which nobody is in any more.
func (p *pool) giveBack(ref arena.Ref) {
	p.arena.Free(0, ref, blockBytes)
	p.held.Add(-1)
}

func (p *pool) close() {
	for ref := p.take(); ref != 0; ref = p.take() {
		p.giveBack(ref)
	}
}
