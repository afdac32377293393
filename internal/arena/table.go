package arena

import (
	"sync/atomic"
	"unsafe"
)

const ptrSize = unsafe.Sizeof(uintptr(0))

// table maps chunk numbers to memory. Reading needs no lock; appending is
// done under the heap's mutex.
type table struct {
	first    atomic.Pointer[unsafe.Pointer]
	length   atomic.Uint32 // of use to readers only as a check
	capacity int
}

// entry is the place that holds the memory of the chunk that r lies in.
func (t *table) entry(r Ref) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(t.first.Load()), uintptr(r>>chunkShift)*ptrSize))
}

// header is the header of the chunk that r lies in.
func (t *table) header(r Ref) *header { return (*header)(*t.entry(r)) }

// memory is Arena.Pointer.
func (t *table) memory(r Ref) unsafe.Pointer {
	return unsafe.Add(*t.entry(r), uintptr(r)&(ChunkSize-1))
}

// span is the record of the span whose address is base.
func (t *table) span(base Ref) *span {
	return &t.header(base)[base>>pageShift&(pagesPerChunk-1)]
}

// spanAt returns record and address of the span that r lies in.
func (t *table) spanAt(r Ref) (*span, Ref) {
	h := t.header(r)
	first := h[r>>pageShift&(pagesPerChunk-1)].first
	return &h[first], r&^(ChunkSize-1) | Ref(first)<<pageShift
}

// chunks are the entries as a slice.
func (t *table) chunks() []unsafe.Pointer {
	return unsafe.Slice(t.first.Load(), t.length.Load())
}

// append publishes a chunk and returns its address. A reader that still has
// the old table finds all older chunks in it, and cannot know the new one.
func (t *table) append(memory unsafe.Pointer) Ref {
	n := int(t.length.Load())
	if n == t.capacity {
		t.capacity = max(16, 2*n)
		grown := make([]unsafe.Pointer, t.capacity)
		copy(grown, t.chunks())
		t.first.Store(&grown[0])
	}
	t.length.Store(uint32(n + 1))
	t.chunks()[n] = memory
	return Ref(n) << chunkShift
}

func (t *table) reset() {
	t.first.Store(nil)
	t.length.Store(0)
	t.capacity = 0
}
