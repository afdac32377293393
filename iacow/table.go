package iacow

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// table is the node table in memory. Its pages come from the last published
// checkpoint when they are first used, and then stay.
type table struct {
	arena *arena.Arena
	pages atomic.Pointer[[]unsafe.Pointer] // replaced to grow, filled in under mu; nil = not used yet
	dirty atomic.Uint64                    // first page of the list of dirty ones, its number + 1

	mu    sync.Mutex
	refs  []arena.Ref // of the pages; 0 = not used yet or on the Go heap
	last  *image      // published last; nil: none was, and there are no pages but those in memory
	next  uint64      // lowest id never handed out
	spare uint64      // first page of the list of those with free ids, its number + 1
}

func (t *table) init(a *arena.Arena, last *image) {
	t.arena, t.last, t.next = a, last, 1
	pages := 0
	if last != nil {
		t.next, pages = last.next, int(last.footer.pages)
	}
	slots := make([]unsafe.Pointer, pages)
	t.pages.Store(&slots)
	t.refs = make([]arena.Ref, pages)
}

// Entry returns the word of an id. A node that leads to an id which never had a
// node is damage, though each part of it may be intact; without an error the tree
// would look for the node again and again.
func (t *table) Entry(id btree.NodeID) (*atomic.Uint64, error) {
	g, ok := t.page(uint32(id) >> pageShift)
	if !ok {
		var err error
		if g, err = t.use(id); err != nil {
			return nil, err
		}
	}
	word := g.entry(int(id % pageIDs))
	if word.Load() == 0 && g.has(voidBits, int(id%pageIDs)) {
		return nil, t.noNode(id)
	}
	return word, nil
}

// page returns a page if it is in memory.
func (t *table) page(number uint32) (page, bool) {
	pages := *t.pages.Load()
	if int(number) >= len(pages) {
		return page{}, false
	}
	p := atomic.LoadPointer(&pages[number])
	return page{p}, p != nil
}

// at returns the page of an id whose page is in memory, and its place there.
func (t *table) at(id btree.NodeID) (page, int) {
	g, _ := t.page(uint32(id) >> pageShift)
	return g, int(id % pageIDs)
}

// use brings the page of an id that exists into memory.
func (t *table) use(id btree.NodeID) (page, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == 0 || uint64(id) >= t.next {
		return page{}, t.damage(id)
	}
	number := uint32(id) >> pageShift
	if g, ok := t.page(number); ok {
		return g, nil
	}
	return t.load(number, arena.Checkpoint.Shard(number), true)
}

// load makes the page in memory and fills it from the last checkpoint, if that
// has it. What must be done although memory is short gets it from the Go heap.
// The caller holds mu.
func (t *table) load(number, shard uint32, must bool) (page, error) {
	var words pageWords
	if t.last != nil && uint64(number) < t.last.footer.pages {
		if err := t.last.readPage(uint64(number), &words); err != nil {
			return page{}, err
		}
	}
	ref, err := t.arena.AllocLasting(shard, pageMemory)
	if err != nil && !must {
		return page{}, err
	}
	g := page{}
	if err == nil {
		g.p = t.arena.Pointer(ref)
	} else {
		g.p, ref = unsafe.Pointer(new([pageMemory / 8]uint64)), 0
	}
	zeroWords(g.p, pageMemory/8)
	t.fill(g, number, &words)
	t.install(number, g, ref)
	return g, nil
}

// fill sets the entries of a new page. Ids that have no node are void, and free
// if they ever were in use.
func (t *table) fill(g page, number uint32, words *pageWords) {
	first := uint64(number) << pageShift
	for i, e := range words {
		if e != 0 {
			g.entry(i).Store(uint64(e))
			continue
		}
		g.set(voidBits, i)
		if id := first + uint64(i); id != 0 && id < t.next {
			t.free(g, number, i)
		}
	}
}

// install makes a page visible.
func (t *table) install(number uint32, g page, ref arena.Ref) {
	pages := *t.pages.Load()
	if int(number) >= len(pages) {
		// Readers of the old slice do not look beyond its length.
		for int(number) >= len(pages) {
			pages = append(pages, nil)
			t.refs = append(t.refs, 0)
		}
		defer t.pages.Store(&pages)
	}
	t.refs[number] = ref
	atomic.StorePointer(&pages[number], g.p)
}

// NewID prefers ids that were freed.
func (t *table) NewID(shard uint32) (btree.NodeID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spare != 0 {
		return t.takeFree(), nil
	}
	if t.next > maxNodeID {
		return 0, fmt.Errorf("iacow: out of node ids: %w", fault.ErrMemoryLimit)
	}
	number := uint32(t.next >> pageShift)
	g, ok := t.page(number)
	if !ok {
		var err error
		if g, err = t.load(number, shard, false); err != nil {
			return 0, err
		}
	}
	id := btree.NodeID(t.next)
	t.next++
	t.handOut(g, id)
	return id, nil
}

// takeFree hands out an id of the first page that has one. The caller holds mu.
func (t *table) takeFree() btree.NodeID {
	number := uint32(t.spare - 1)
	g, _ := t.page(number)
	i := g.lowest(freeBits)
	g.clear(freeBits, i)
	if !g.any(freeBits) {
		t.spare = g.word(nextFreeAt).Load()
		g.word(inFreeAt).Store(0)
	}
	id := btree.NodeID(number<<pageShift | uint32(i))
	t.handOut(g, id)
	return id
}

func (t *table) handOut(g page, id btree.NodeID) {
	g.clear(voidBits, int(id%pageIDs))
	t.note(g, id)
}

// release lets ids be handed out again that were gone.
func (t *table) release(list []freed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range list {
		g, _ := t.page(f.number)
		for w, ids := range f.ids {
			for ; ids != 0; ids &= ids - 1 {
				i := 64*w + bits.TrailingZeros64(ids)
				g.clear(goneBits, i)
				t.free(g, f.number, i)
			}
		}
	}
}

// free puts an id among the free ones. The caller holds mu.
func (t *table) free(g page, number uint32, i int) {
	g.set(freeBits, i)
	if g.word(inFreeAt).Load() == 0 {
		g.word(inFreeAt).Store(1)
		g.word(nextFreeAt).Store(t.spare)
		t.spare = uint64(number) + 1
	}
}

// note makes the next checkpoint look at an id: it may differ from the last
// one. The bit is set before the page is queued, and the checkpoint takes the
// page out before it looks at the bits.
func (t *table) note(g page, id btree.NodeID) {
	i := int(id % pageIDs)
	if !g.has(dirtyBits, i) {
		g.set(dirtyBits, i)
	}
	t.queue(g, uint32(id)>>pageShift)
}

func (t *table) queue(g page, number uint32) {
	if g.word(queuedAt).Load() != 0 || !g.word(queuedAt).CompareAndSwap(0, 1) {
		return
	}
	for {
		first := t.dirty.Load()
		g.word(nextDirtyAt).Store(first)
		if t.dirty.CompareAndSwap(first, uint64(number)+1) {
			return
		}
	}
}

// lastPublished is the image of the last published checkpoint, nil for none.
func (t *table) lastPublished() *image {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// takeDirty empties the list of dirty pages.
func (t *table) takeDirty() (numbers []uint32) {
	for next := t.dirty.Swap(0); next != 0; {
		number := uint32(next - 1)
		g, _ := t.page(number)
		next = g.word(nextDirtyAt).Load()
		g.word(queuedAt).Store(0)
		numbers = append(numbers, number)
	}
	return numbers
}

// noNode is the error for a reference to an id without a node.
func (t *table) noNode(id btree.NodeID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damage(id)
}

// damage is noNode for who holds mu.
func (t *table) damage(id btree.NodeID) error {
	if t.last == nil {
		return fmt.Errorf("iacow: there is no node %d: %w", id, fault.ErrCorrupt)
	}
	return fault.Corrupt(t.last.newest().info.Name, 0, 0, "there is no node %d", id)
}

// bytes is the memory of the table.
func (t *table) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(0)
	for _, p := range *t.pages.Load() {
		if p != nil {
			n += int64(pageMemory)
		}
	}
	return n
}

// close gives the memory back, and calls fn for every entry before.
func (t *table) close(fn func(entry)) {
	for number, p := range *t.pages.Load() {
		if p == nil {
			continue
		}
		g := page{p}
		for i := range pageIDs {
			if e := entry(g.entry(i).Load()); e != 0 {
				fn(e)
			}
		}
		if ref := t.refs[number]; ref != 0 {
			t.arena.Free(uint32(number), ref, pageMemory)
		}
	}
	t.pages.Store(new([]unsafe.Pointer))
	t.refs, t.spare = nil, 0
}
