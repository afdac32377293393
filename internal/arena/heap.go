package arena

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/fault"
)

// heap hands out runs of pages. The mutex guards everything below it, and the
// chunk records.
type heap struct {
	table     *table
	limit     int64
	inUse     atomic.Int64 // of large blocks
	requested atomic.Int64

	mu        sync.Mutex
	lists     [pagesPerChunk]uint32 // chunks by longest free run: number + 1
	filled    pageSet               // lengths from 1 on whose list has a chunk
	chunks    int                   // chunks in use
	empty     int                   // those that are wholly free
	freePages int                   // in the chunks in use
	reserved  int64                 // bytes of the chunks in use or on their way
	vacant    []Ref                 // chunks whose memory was given back
	preparing bool                  // prepare runs
	progress  sync.Cond             // prepare has added a chunk or has ended
	closed    bool
}

func (h *heap) init(t *table, limit int64) {
	h.table, h.limit = t, limit
	h.progress.L = &h.mu
}

// allocSpan returns a span of free blocks that belongs to owner.
func (h *heap) allocSpan(c *class, owner uint32) (Ref, error) {
	base, err := h.alloc(int(c.pages), c.index)
	if err != nil {
		return 0, err
	}
	h.table.span(base).format(c, h.table, base, owner)
	return base, nil
}

// allocLarge returns a block of whole pages.
func (h *heap) allocLarge(size int) (Ref, error) {
	pages := (size + pageSize - 1) >> pageShift
	base, err := h.alloc(pages, largeClass)
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
func (h *heap) alloc(pages int, class uint8) (Ref, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	length := h.filled.next(pages)
	for length == pagesPerChunk {
		if err := h.grow(); err != nil {
			return 0, err
		}
		length = h.filled.next(pages)
	}
	base := chunkRef(h.lists[length] - 1)
	hd := h.table.header(base)
	c := hd.chunkRecord()
	first := c.free.findRun(pages)
	c.free.removeRun(first, pages)
	h.freePages -= pages
	h.relist(base, c)
	hd.makeSpan(first, pages, class)
	h.prepareAhead()
	return base | Ref(first)<<pageShift, nil
}

// release gives the pages of a span back. A wholly free chunk is vacated, if
// it is not the only one and half a chunk more than the stock remains.
func (h *heap) release(base Ref) {
	sp := h.table.span(base)
	chunk := base &^ (ChunkSize - 1)
	c := h.table.header(chunk).chunkRecord()
	h.mu.Lock()
	c.free.addRun(int(sp.first), int(sp.pages))
	h.freePages += int(sp.pages)
	h.relist(chunk, c)
	vacate := c.longest == pagesPerChunk-1 && h.empty > 1 && h.freePages >= h.ahead()+pagesPerChunk*3/2
	if vacate {
		h.unlink(c)
		h.chunks--
		h.freePages -= pagesPerChunk - 1
	}
	h.mu.Unlock()
	if vacate {
		h.vacate(chunk)
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
	c.free.addRun(1, pagesPerChunk-1)
	h.chunks++
	h.freePages += pagesPerChunk - 1
	h.relist(chunk, c)
}

func (h *heap) stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{
		Reserved:  h.reserved,
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
	h.reserved, h.chunks = 0, 0
	return errors.Join(errs...)
}
