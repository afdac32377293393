package chainindex

import (
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/arena"
)

const (
	bitsPerBlock  = 1 << 18 // nodes of half a GiB
	bytesPerBlock = bitsPerBlock / 8
)

// bitmap is a set of numbers off the Go heap, which is to stay the same
// however large files are. Numbers are added one by one and only removed all together.
type bitmap struct {
	refs   []arena.Ref
	blocks []unsafe.Pointer
	last   int   // size of the last block
	size   int64 // of all blocks
}

// newBitmap makes an empty set of numbers below n, for a file of a checkpoint.
func newBitmap(a *arena.Arena, n uint64) (bitmap, error) {
	var m bitmap
	for ; n > 0; n -= min(n, bitsPerBlock) {
		m.last = int(min(n, bitsPerBlock)+63) / 64 * 8
		ref, err := a.Alloc(arena.Checkpoint.Shard(0), m.last)
		if err != nil {
			m.free(a)
			return bitmap{}, err
		}
		clear(a.Bytes(ref, m.last))
		m.size += int64(m.last)
		m.refs = append(m.refs, ref)
		m.blocks = append(m.blocks, a.Pointer(ref))
	}
	return m, nil
}

func (m *bitmap) free(a *arena.Arena) {
	for i, ref := range m.refs {
		size := bytesPerBlock
		if i == len(m.refs)-1 {
			size = m.last
		}
		a.Free(0, ref, size)
	}
	m.refs, m.blocks = nil, nil
}

// bytes is the size that the set was made with. It may be asked for while the set
// is freed.
func (m *bitmap) bytes() int64 { return m.size }

func (m *bitmap) word(i uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(m.blocks[i/bitsPerBlock], i%bitsPerBlock/64*8))
}

func (m *bitmap) has(i uint64) bool { return m.word(i).Load()>>(i%64)&1 != 0 }

// reset empties the set.
func (m *bitmap) reset() {
	for i := uint64(0); i < uint64(m.size)*8; i += 64 {
		m.word(i).Store(0)
	}
}

func (m *bitmap) add(i uint64) { m.word(i).Or(1 << (i % 64)) }
