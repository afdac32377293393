package arena

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
)

// heap hands out runs of pages. The mutex guards everything below it, and the
// chunk records.
type heap struct {
	table     *table
	limit     int64
	onMark    func()
	inUse     atomic.Int64 // of large blocks
	requested atomic.Int64

	mu        sync.Mutex
	mark      int64           // see SetMark
	kept      [priorities]int // pages that each priority leaves, see SetReserve
	rooms     [kinds]roomList
	chunks    int       // chunks in use
	empty     int       // those of passing blocks that are wholly free
	taken     int       // pages in spans
	runs      int       // pages of the chunks in use that are free and in long runs
	freePages int       // in the chunks in use, but for those of lasting blocks
	absent    int       // of them, pages whose memory was given back
	aside     int       // free pages of lasting blocks whose memory was given back
	reserved  int64     // bytes of the chunks in use or on their way, without parked spans
	vacant    []Ref     // chunks whose memory was given back
	parked    Ref       // first span of stable blocks whose memory was given back
	parkedLen int64     // bytes of those
	preparing bool      // prepare runs
	progress  sync.Cond // prepare has added a chunk or has ended
	closed    bool
}

func (h *heap) init(t *table, c Config) {
	h.table, h.limit, h.onMark = t, c.Limit, c.OnMark
	h.progress.L = &h.mu
}

// allocSpan returns a span of free blocks that belongs to owner.
func (h *heap) allocSpan(c *class, owner *shard) (Ref, error) {
	base := h.unpark(c, owner.priority)
	if base == 0 {
		var err error
		if base, err = h.alloc(owner.priority, int(c.pages), c.index, c.kind); err != nil {
			return 0, err
		}
	}
	h.table.span(base).format(c, h.table, base, owner.id)
	return base, nil
}

// allocLarge returns a block of whole pages.
func (h *heap) allocLarge(p Priority, size int) (Ref, error) {
	pages := (size + pageSize - 1) >> pageShift
	base, err := h.alloc(p, pages, largeClass, passing)
	if err != nil {
		return 0, err
	}
	h.inUse.Add(int64(pages) << pageShift)
	h.requested.Add(int64(size))
	return base, nil
}

func (h *heap) freeLarge(base Ref, size int) {
	h.inUse.Add(-int64(h.table.span(base).pages) << pageShift)
	h.requested.Add(-int64(size))
	h.release(base)
}

// alloc takes a run of pages and sets up its records.
func (h *heap) alloc(p Priority, pages int, class uint8, k kind) (Ref, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	chunk, err := h.room(p, pages, k)
	if err != nil {
		return 0, err
	}
	hd := h.table.header(chunk)
	c := hd.chunkRecord()
	first := c.free.findRun(pages)
	c.free.removeRun(first, pages)
	if h.kept[p] > 0 && h.inRuns()-int(c.inRuns)+c.free.inRuns() < h.kept[p] {
		c.free.addRun(first, pages)
		return 0, h.errReserve(p)
	}
	h.countAbsent(c, -hd.present(first, pages))
	h.countFree(c, -pages)
	h.relist(chunk, c)
	hd.makeSpan(first, pages, class)
	h.prepareAhead()
	h.take(pages)
	return chunk | Ref(first)<<pageShift, nil
}

// room returns a chunk with a run of free pages.
func (h *heap) room(p Priority, pages int, k kind) (Ref, error) {
	chunk, found := h.find(pages, k)
	for !found {
		err := h.growFor(p, pages)
		if err != nil {
			if chunk, found = h.findAny(pages); !found {
				return 0, err
			}
			break
		}
		chunk, found = h.find(pages, k)
	}
	return chunk, nil
}

// growFor is grow unless the pages to be taken from the new chunk are kept.
func (h *heap) growFor(p Priority, pages int) error {
	if h.kept[p] > 0 && h.inRuns()-max(pages, minRun) < h.kept[p] {
		return h.errReserve(p)
	}
	return h.grow()
}

// take counts pages that go into a span, or come back.
func (h *heap) take(pages int) {
	h.taken += pages
	if pages > 0 && h.mark > 0 && int64(h.taken)<<pageShift > h.mark {
		h.onMark()
	}
}

// find returns a chunk of the kind with a run of at least n pages: chunk 0 if
// possible, because that stays in any case.
func (h *heap) find(n int, k kind) (Ref, bool) {
	if chunk, found := h.rooms[mixed].find(n); found {
		return chunk, true
	}
	if chunk, found := h.rooms[k].find(n); found || k == passing {
		return chunk, found
	}
	chunk, found := h.rooms[passing].find(pagesPerChunk - 1)
	if found {
		h.become(chunk, k)
	}
	return chunk, found
}

// findAny finds a run where there can be no more chunks.
func (h *heap) findAny(n int) (chunk Ref, found bool) {
	for k := range h.rooms {
		if chunk, found = h.rooms[k].find(n); found {
			return chunk, true
		}
	}
	return 0, false
}

// become makes a wholly free chunk one of passing or of lasting blocks.
func (h *heap) become(chunk Ref, k kind) {
	hd := h.table.header(chunk)
	c := hd.chunkRecord()
	h.countAbsent(c, -hd.present(1, pagesPerChunk-1))
	h.countFree(c, 1-pagesPerChunk)
	h.convert(chunk, c, k)
	h.countFree(c, pagesPerChunk-1)
}

// countFree keeps the stock of free pages.
func (h *heap) countFree(c *chunkRecord, pages int) {
	if c.kind != lasting {
		h.freePages += pages
	}
}

// countAbsent counts free pages whose memory was given back.
func (h *heap) countAbsent(c *chunkRecord, pages int) {
	if c.kind == lasting {
		h.aside += pages
	} else {
		h.absent += pages
	}
}

// giveBack takes a span back that is wholly free and belongs to no shard.
func (h *heap) giveBack(c *class, base Ref) {
	if c.index == stableClass {
		h.park(base)
	} else {
		h.release(base)
	}
}

// park gives the memory of a span of stable blocks back to the system. Its place
// is kept for such blocks.
func (h *heap) park(base Ref) {
	sp := h.table.span(base)
	discardPages(h.table.memory(base&^(ChunkSize-1)), h.table.memory(base), int(sp.pages)<<pageShift)
	h.mu.Lock()
	defer h.mu.Unlock()
	sp.next, h.parked = h.parked, base
	h.parkedLen += int64(sp.pages) << pageShift
	h.reserved -= int64(sp.pages) << pageShift
	h.take(-int(sp.pages))
}

// unpark takes a parked span into use again; 0 = there is none, or the limit or
// the reserve forbids it. Only stable blocks have any.
func (h *heap) unpark(c *class, p Priority) Ref {
	if c.index != stableClass {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	base, size := h.parked, int64(c.pages)<<pageShift
	if base == 0 || h.limit > 0 && h.reserved+size > h.limit {
		return 0
	}
	h.parkedLen -= size
	if h.kept[p] > 0 && h.inRuns() < h.kept[p] {
		h.parkedLen += size
		return 0
	}
	h.parked = h.table.span(base).next
	h.reserved += size
	h.take(int(c.pages))
	return base
}

// release gives the pages of a span back. Wholly free chunks are vacated while
// another one and half a chunk more than the stock remain.
func (h *heap) release(base Ref) {
	sp := h.table.span(base)
	chunk := base &^ (ChunkSize - 1)
	c := h.table.header(chunk).chunkRecord()
	h.mu.Lock()
	c.free.addRun(int(sp.first), int(sp.pages))
	h.countFree(c, int(sp.pages))
	h.take(-int(sp.pages))
	h.relist(chunk, c)
	if c.kind == lasting && c.longest == pagesPerChunk-1 {
		h.become(chunk, passing)
	}
	excess := h.takeEmpty(1, pagesPerChunk*3/2)
	h.mu.Unlock()
	if excess != 0 {
		h.vacate(excess)
		h.shrink(1, pagesPerChunk*3/2)
	}
}

// shrink vacates wholly free chunks while more than keep of them remain, and as
// many free pages as the stock and spare.
func (h *heap) shrink(keep, spare int) {
	for {
		h.mu.Lock()
		chunk := h.takeEmpty(keep, spare)
		h.mu.Unlock()
		if chunk == 0 {
			return
		}
		h.vacate(chunk)
	}
}

// takeEmpty takes a chunk out of use that is to be vacated; 0 = none. The
// caller holds the mutex.
func (h *heap) takeEmpty(keep, spare int) Ref {
	if h.empty <= keep || h.freePages < h.ahead()+spare {
		return 0
	}
	chunk, _ := h.rooms[passing].find(pagesPerChunk - 1)
	hd := h.table.header(chunk)
	h.absent -= hd.present(1, pagesPerChunk-1)
	h.unlink(hd.chunkRecord())
	h.chunks--
	h.runs -= pagesPerChunk - 1
	h.freePages -= pagesPerChunk - 1
	return chunk
}

// thinRun is the shortest run of free pages that is given back from within a chunk.
const thinRun = 16

// thin gives free pages back that are no stock, from chunks that are in use.
func (h *heap) thin() {
	for n := range h.table.length.Load() {
		h.thinChunk(chunkRef(n))
	}
}

func (h *heap) thinChunk(chunk Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	hd := h.table.header(chunk)
	c := hd.chunkRecord()
	stock := c.kind != lasting && h.freePages-h.absent <= h.ahead()
	if c.longest < thinRun || stock { // or it is full, or vacated
		return
	}
	for first := c.free.next(0); first < pagesPerChunk; {
		end := c.free.nextGap(first)
		if end-first >= thinRun {
			h.discardRun(hd, chunk, first, end)
		}
		first = c.free.next(end)
	}
}

// discardRun gives those of a run of free pages back that are in memory.
func (h *heap) discardRun(hd *header, chunk Ref, first, end int) {
	n := 0
	for i := first; i < end; i++ {
		if !hd[i].absent {
			hd[i].absent = true
			n++
		}
	}
	if n > 0 {
		base := h.table.memory(chunk)
		discardPages(base, unsafe.Add(base, first<<pageShift), (end-first)<<pageShift)
		h.countAbsent(hd.chunkRecord(), n)
	}
}

// vacate gives the memory of a chunk that is in no list back to the system.
func (h *heap) vacate(chunk Ref) {
	discard(h.table.memory(chunk))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.vacant = append(h.vacant, chunk)
	h.reserved -= ChunkSize
}

// reserve counts one more chunk, if the limit allows.
func (h *heap) reserve() bool {
	if h.closed || h.limit > 0 && h.reserved+ChunkSize > h.limit {
		return false
	}
	h.reserved += ChunkSize
	return true
}

// grow adds a wholly free chunk. At the limit it waits for the one being
// prepared, if any; the caller looks again.
func (h *heap) grow() error {
	if h.closed {
		return fmt.Errorf("arena: %w", fault.ErrClosed)
	}
	if !h.reserve() {
		if !h.preparing {
			return fmt.Errorf("arena: %d bytes reserved, limit %d: %w", h.reserved, h.limit, fault.ErrMemoryLimit)
		}
		h.progress.Wait()
		return nil
	}
	chunk, err := h.spare()
	if err != nil {
		return err
	}
	h.activate(chunk)
	return nil
}

// spare turns a reservation into a chunk that is mapped but in no list.
func (h *heap) spare() (Ref, error) {
	if n := len(h.vacant); n > 0 {
		chunk := h.vacant[n-1]
		h.vacant = h.vacant[:n-1]
		advise(h.table.memory(chunk), true) // again: holes may have been made in it
		return chunk, nil
	}
	memory, err := mapChunk(h.table.length.Load() > 0)
	if err != nil {
		h.reserved -= ChunkSize
		return 0, fmt.Errorf("arena: map a chunk beside %d bytes: %w: %w", h.reserved, fault.ErrMemoryLimit, err)
	}
	return h.table.append(memory), nil
}

// activate puts a chunk with no spans into use.
func (h *heap) activate(chunk Ref) {
	c := h.table.header(chunk).chunkRecord()
	*c = chunkRecord{}
	if chunk == 0 {
		c.kind = mixed
	}
	c.free.addRun(1, pagesPerChunk-1)
	h.chunks++
	h.countFree(c, pagesPerChunk-1)
	h.relist(chunk, c)
}

func (h *heap) stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{
		Reserved:  h.reserved - int64(h.absent+h.aside)<<pageShift,
		InUse:     h.inUse.Load(),
		Requested: h.requested.Load(),
		Chunks:    h.chunks,
	}
}

// close waits for prepare and unmaps all chunks.
func (h *heap) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for h.preparing {
		h.progress.Wait()
	}
	var errs []error
	for _, memory := range h.table.chunks() {
		errs = append(errs, unmapChunk(memory))
	}
	h.table.reset()
	h.rooms = [kinds]roomList{}
	h.reserved, h.chunks, h.parked, h.parkedLen, h.absent, h.aside, h.runs = 0, 0, 0, 0, 0, 0, 0
	return errors.Join(errs...)
}
