package arena

import (
	"bytes"

	"github.com/rekindledb/rekindle/internal/invariants"
)

// The functions of this file run in test builds only.

const poisonByte = 0xCC

// poison fills free memory, by doubling copies: the race detector takes each
// as one access and so sees, at little cost, who still uses the block.
func poison(b []byte) {
	b[0] = poisonByte
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// poisonBlock fills a block, but for what others may look at.
func (a *Arena) poisonBlock(c *class, r Ref) {
	poison(a.Bytes(r, int(c.size))[c.untouched:])
}

// poisonSpan fills all blocks of a span.
func (a *Arena) poisonSpan(c *class, base Ref) {
	for i := range Ref(c.blocks) {
		a.poisonBlock(c, base+Ref(c.first)+i*Ref(c.size))
	}
}

// checkPoison fails if a block was written while it was free.
func (a *Arena) checkPoison(r Ref, c *class) {
	b := a.Bytes(r, int(c.size))[c.untouched:]
	if b[0] != poisonByte || !bytes.Equal(b[1:], b[:len(b)-1]) {
		invariants.Fail("block %#x of %d bytes was written after it was freed: %x", uint64(r), c.size, b)
	}
}

// checkFree fails if r cannot be a live block of the size; else it poisons it.
func (a *Arena) checkFree(r Ref, size int) {
	a.checkRef(r)
	sp, base := a.table.spanAt(r)
	if uint(size) > maxSmall {
		if sp.class != largeClass || base != r || (size+pageSize-1)>>pageShift != int(sp.pages) {
			invariants.Fail("%#x is freed as a block of %d bytes, which it is not", uint64(r), size)
		}
		poison(a.Bytes(r, size))
		return
	}
	c := &a.classes[sp.class]
	if int(c.size) != classSize(classOf(size)) || (r-base-Ref(c.first))%Ref(c.size) != 0 {
		invariants.Fail("%#x is freed as a block of %d bytes, but lies in a span of class %d", uint64(r), size, sp.class)
	}
	a.poisonBlock(c, r)
}

// checkRef fails if r lies in no block of a mapped chunk.
func (a *Arena) checkRef(r Ref) {
	if r&(ChunkSize-1) < pageSize {
		invariants.Fail("%#x is no block", uint64(r))
	}
	if n := int(r >> chunkShift); n >= int(a.table.length.Load()) {
		invariants.Fail("%#x lies in chunk %d, which does not exist", uint64(r), n)
	}
}
