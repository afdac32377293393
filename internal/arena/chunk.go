package arena

import (
	"sync/atomic"
	"unsafe"
)

const (
	chunkShift    = 22
	pageShift     = 14
	pageSize      = 1 << pageShift
	pagesPerChunk = 1 << (chunkShift - pageShift)
	lineSize      = 64
)

// header is page 0 of a chunk: a record for each page. The first one is the
// chunk's.
type header [pagesPerChunk]span

// chunkRecord is the heap's record of a chunk, guarded by its mutex.
type chunkRecord struct {
	free    pageSet
	next    uint32 // in the list of chunks with the same longest run: number + 1
	prev    uint32
	longest uint32 // run of free pages; 0 = the chunk is in no list
	inRuns  uint32 // free pages in long runs, see pageSet.inRuns
	kind    kind
}

// kind says which blocks a chunk is for. One of passing blocks can become
// wholly free and be given back, which one lasting block would prevent.
type kind uint8

const (
	passing kind = iota // and every chunk that is wholly free
	lasting
	mixed // chunk 0, which is never given back
	kinds
)

// span is the record of a run of pages; of its pages but the first, only the
// field first counts. first, class and pages are fixed while the span is in
// use; the latch of the owner guards the rest. owner changes only under the
// latch of the old owner.
type span struct {
	bits   [inlineBlocks / 64]uint64 // 1 = free
	next   Ref                       // in the owner's list: address of the span, 0 = end
	prev   Ref
	owner  atomic.Uint32
	left   uint16 // free blocks
	first  uint8  // page in the chunk
	class  uint8  // or largeClass
	pages  uint8
	state  state
	lowest uint8 // no word of the bitmap before this one has a free block
	absent bool  // of a page in no span: its memory went back to the system
	_      [4]byte
}

type state uint8

const (
	current state = iota
	full
	listed
)

const largeClass = 255

const _ = uint(largeClass - classCount)

// The layout in the package documentation.
const (
	_ = uint(lineSize-unsafe.Sizeof(span{})) + uint(unsafe.Sizeof(span{})-lineSize)
	_ = uint(lineSize - unsafe.Sizeof(chunkRecord{}))
	_ = uint(pageSize-unsafe.Sizeof(header{})) + uint(unsafe.Sizeof(header{})-pageSize)
)

func (h *header) chunkRecord() *chunkRecord { return (*chunkRecord)(unsafe.Pointer(&h[0])) }

// makeSpan sets up the records of a run of pages; owner and content follow.
func (h *header) makeSpan(first, pages int, class uint8) *span {
	for i := first; i < first+pages; i++ {
		h[i].first = uint8(first)
	}
	sp := &h[first]
	sp.class, sp.pages = class, uint8(pages)
	return sp
}

// present notes that pages are in memory, or will be when they are touched, and
// returns how many of them had gone back.
func (h *header) present(first, pages int) (n int) {
	for i := first; i < first+pages; i++ {
		if h[i].absent {
			h[i].absent = false
			n++
		}
	}
	return n
}

// words is the bitmap of the slab at base. Only those words are ever used that
// have a bit of the class.
func (sp *span) words(c *class, t *table, base Ref) *[bitmapWords]uint64 {
	if c.first > 0 {
		return (*[bitmapWords]uint64)(t.memory(base))
	}
	return (*[bitmapWords]uint64)(unsafe.Pointer(&sp.bits))
}

// format makes the span at base a slab with all blocks free.
func (sp *span) format(c *class, t *table, base Ref, owner uint32) {
	words := sp.words(c, t, base)
	n := int(c.blocks)
	for i := 0; i*64 < n; i++ {
		words[i] = ^uint64(0) >> max(0, 64-(n-i*64))
	}
	sp.next, sp.prev = 0, 0
	sp.left, sp.lowest, sp.state = c.blocks, 0, current
	sp.owner.Store(owner)
}
