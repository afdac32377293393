package btree

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

const (
	tablePageSize  = 4096
	tablePageWords = tablePageSize / 8
	tablePageShift = 9
)

// NodeTable is a Store in memory with a single epoch, so nothing is ever
// copied: the least that the tree needs, for tests and benchmarks. Those with
// epochs or images embed it and override Entry and Image, Epoch, Replaced and
// Dropped; IACoW has a table of its own.
type NodeTable struct {
	arena *arena.Arena
	pages atomic.Pointer[[]unsafe.Pointer] // replaced to grow, under mu

	mu     sync.Mutex
	refs   []arena.Ref // of the pages
	next   NodeID      // lowest id never handed out
	ids    []NodeID    // free ids
	blocks []arena.Ref // free blocks
}

var _ Store = (*NodeTable)(nil)

// NewNodeTable returns an empty table. Ids start at 1.
func NewNodeTable(a *arena.Arena) *NodeTable {
	t := &NodeTable{arena: a, next: 1}
	t.pages.Store(new([]unsafe.Pointer))
	return t
}

// Entry returns the word of an id that NewID has handed out. For any other one,
// as a damaged image may name it, the error is fault.ErrCorrupt.
func (t *NodeTable) Entry(id NodeID) (*atomic.Uint64, error) {
	pages := *t.pages.Load()
	if int(id>>tablePageShift) >= len(pages) {
		return nil, fmt.Errorf("btree: node table has no node %d: %w", id, fault.ErrCorrupt)
	}
	page := pages[id>>tablePageShift]
	return (*atomic.Uint64)(unsafe.Add(page, id%tablePageWords*8)), nil
}

// Image is not called: no entry has ImageBit.
func (t *NodeTable) Image(id NodeID, entry uint64) (unsafe.Pointer, error) {
	return nil, fmt.Errorf("btree: node %d is an image in a table without images: %w", id, fault.ErrCorrupt)
}

// Epoch is always 0.
func (t *NodeTable) Epoch() uint64 { return 0 }

// NewID prefers ids that were freed.
func (t *NodeTable) NewID(shard uint32) (NodeID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.ids); n > 0 {
		id := t.ids[n-1]
		t.ids = t.ids[:n-1]
		return id, nil
	}
	if err := t.extend(shard, t.next); err != nil {
		return 0, err
	}
	t.next++
	return t.next - 1, nil
}

// extend adds zeroed pages until id has a word.
func (t *NodeTable) extend(shard uint32, id NodeID) error {
	pages := *t.pages.Load()
	for int(id>>tablePageShift) >= len(pages) {
		ref, err := t.arena.Alloc(shard, tablePageSize)
		if err != nil {
			return err
		}
		page := t.arena.Pointer(ref)
		for w := range uintptr(tablePageWords) {
			storeWord(unsafe.Add(page, 8*w), 0)
		}
		t.refs = append(t.refs, ref)
		pages = append(pages[:len(pages):len(pages)], page)
		t.pages.Store(&pages)
	}
	return nil
}

// NewBlock prefers blocks that were nodes before.
func (t *NodeTable) NewBlock(shard uint32) (arena.Ref, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.blocks); n > 0 {
		ref := t.blocks[n-1]
		t.blocks = t.blocks[:n-1]
		return ref, nil
	}
	ref, err := t.arena.Alloc(shard, NodeSize)
	if err == nil {
		InitBlock(t.arena.Pointer(ref))
	}
	return ref, err
}

// FreeBlock keeps the block for NewBlock.
func (t *NodeTable) FreeBlock(_ uint32, ref arena.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks = append(t.blocks, ref)
}

// FreeID clears the entry and keeps the id for NewID.
func (t *NodeTable) FreeID(id NodeID) {
	if word, err := t.Entry(id); err == nil {
		word.Store(0)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids = append(t.ids, id)
}

// Replaced frees the old copy at once: readers notice its version.
func (t *NodeTable) Replaced(shard uint32, _ NodeID, old, _, _ uint64) {
	t.FreeBlock(shard, arena.Ref(old))
}

// Dropped frees the last copy and the id.
func (t *NodeTable) Dropped(shard uint32, id NodeID, last, _, _ uint64) {
	t.FreeID(id)
	t.FreeBlock(shard, arena.Ref(last))
}

// Pooled returns the number of free blocks kept.
func (t *NodeTable) Pooled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.blocks)
}

// Close gives the memory of the table and of all free blocks back. The tree is
// closed and no pin exists.
func (t *NodeTable) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range t.blocks {
		t.arena.Free(0, ref, NodeSize)
	}
	for _, ref := range t.refs {
		t.arena.Free(0, ref, tablePageSize)
	}
	t.blocks, t.refs, t.ids = nil, nil, nil
	t.pages.Store(new([]unsafe.Pointer))
}
