package iacow

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
)

// pool keeps the blocks that are not in use. A block never goes back to the
// arena before Close, because address hints may lead to it as long as the tree
// lives. The list is in the blocks themselves.
type pool struct {
	arena *arena.Arena
	held  atomic.Int64 // blocks taken from the arena

	mu    sync.Mutex
	first arena.Ref
	count int
}

func (p *pool) block(ref arena.Ref) unsafe.Pointer { return p.arena.Pointer(ref) }

// NewBlock prefers blocks that were nodes before.
func (p *pool) NewBlock(shard uint32) (arena.Ref, error) {
	if ref := p.take(); ref != 0 {
		return ref, nil
	}
	ref, err := p.arena.AllocLasting(shard, blockBytes)
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

// giveBack gives a block back to the arena, when the tree is closed.
func (p *pool) giveBack(ref arena.Ref) {
	p.arena.Free(0, ref, blockBytes)
	p.held.Add(-1)
}

func (p *pool) close() {
	for ref := p.take(); ref != 0; ref = p.take() {
		p.giveBack(ref)
	}
}
