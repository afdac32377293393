package iacow

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// page is a page of the node table in memory:
//
//	offset  size
//	     0  4096  entries
//	  4096    64  dirty: changed since the last published checkpoint, or perhaps
//	  4160    64  captured: the capture under way has the node
//	  4224    64  gone: dropped, but perhaps not in a published checkpoint
//	  4288    64  free: to be handed out; under table.mu
//	  4352    64  late: dropped after the epoch that is being captured
//	  4416    64  void: no node since the page came into memory
//	  4480     8  queued: 1 while the page is in the list of dirty pages
//	  4488     8  next dirty page, its number + 1
//	  4496     8  next page with free ids, its number + 1; under table.mu
//	  4504     8  1 while the page is in the list of those; under table.mu
type page struct{ p unsafe.Pointer }

type bitmap uintptr

const (
	dirtyBits    bitmap = pageBytes
	capturedBits bitmap = dirtyBits + bitmapBytes
	goneBits     bitmap = capturedBits + bitmapBytes
	freeBits     bitmap = goneBits + bitmapBytes
	lateBits     bitmap = freeBits + bitmapBytes
	voidBits     bitmap = lateBits + bitmapBytes

	queuedAt    = uintptr(voidBits + bitmapBytes)
	nextDirtyAt = queuedAt + 8
	nextFreeAt  = nextDirtyAt + 8
	inFreeAt    = nextFreeAt + 8

	pageMemory  = int(inFreeAt + 8)
	bitmapBytes = pageIDs / 8
	bitmapWords = bitmapBytes / 8
)

func (g page) word(at uintptr) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Add(g.p, at)) }

// entry is the word of the i-th id of the page.
func (g page) entry(i int) *atomic.Uint64 { return g.word(8 * uintptr(i)) }

// bits is the w-th word of a bitmap.
func (g page) bits(b bitmap, w int) *atomic.Uint64 { return g.word(uintptr(b) + 8*uintptr(w)) }

func (g page) has(b bitmap, i int) bool { return g.bits(b, i/64).Load()&(1<<(i%64)) != 0 }

func (g page) set(b bitmap, i int) { g.bits(b, i/64).Or(1 << (i % 64)) }

func (g page) clear(b bitmap, i int) { g.bits(b, i/64).And(^uint64(1 << (i % 64))) }

// any reports whether a bit of the bitmap is set.
func (g page) any(b bitmap) bool {
	for w := range bitmapWords {
		if g.bits(b, w).Load() != 0 {
			return true
		}
	}
	return false
}

func (g page) clearAll(b bitmap) {
	for w := range bitmapWords {
		g.bits(b, w).Store(0)
	}
}

// lowest returns the first bit that is set, of those that are.
func (g page) lowest(b bitmap) int {
	for w := range bitmapWords {
		if word := g.bits(b, w).Load(); word != 0 {
			return 64*w + bits.TrailingZeros64(word)
		}
	}
	return -1
}
