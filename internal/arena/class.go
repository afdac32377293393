package arena

import "math/bits"

const (
	sizeCount   = 93
	stableClass = 2 * sizeCount // those of lasting blocks come before it
	classCount  = stableClass + 1
	minBlock    = 16
	maxSmall    = 112 << 10 // largest block that shares a span
	maxSharded  = 4 << 10   // largest block that every shard keeps spans for

	inlineBlocks = 256 // blocks that the bitmap in a span record has room for
	bitmapWords  = 16
	bitmapBytes  = bitmapWords * 8 // of a span that holds its bitmap itself

	inverseShift = 40
)

// class is the geometry of one block size. It never changes.
type class struct {
	size      uint32 // of a block in bytes
	first     uint32 // offset of block 0 in the span
	blocks    uint16 // in a span
	listAt    uint16 // free blocks with which a full span is listed
	pages     uint8  // of a span
	index     uint8  // number of the class
	kind      kind   // of the chunks that its spans lie in
	shardMask uint32 // ANDed to the shard number
	inverse   uint64 // 1/size in units of 1<<-inverseShift, rounded up
	untouched uint32 // bytes at the start of a block that are left as they are when it is free
}

// classOf returns the number of the smallest class for 0 ≤ size ≤ maxSmall.
// The class is the size's leading four bits; below 128 all steps are 8 bytes.
func classOf(size int) int {
	n := uint(max(size, 9) - 1)
	shift := bits.Len(n|64) - 4
	return (shift-3)<<3 + int(n>>shift) - 1
}

// classSize is the largest size of class i.
func classSize(i int) int {
	if i < 15 {
		return (i + 2) * 8
	}
	return ((i+1)&7 + 9) << ((i+1)>>3 + 2)
}

// makeClasses fills in all classes. Those of lasting blocks are those of passing
// ones but for where they lie.
func makeClasses(all *[classCount]class) {
	for i := range sizeCount {
		c := makeClass(i)
		all[i] = c
		c.index, c.kind = uint8(sizeCount+i), lasting
		all[sizeCount+i] = c
	}
	all[stableClass] = all[sizeCount+classOf(StableBlock)].stable()
}

// makeClass makes a class of passing blocks.
func makeClass(i int) class {
	size := classSize(i)
	c := class{size: uint32(size), index: uint8(i), kind: passing, inverse: (1<<inverseShift)/uint64(size) + 1}
	if pageSize/size > inlineBlocks {
		c.first = bitmapBytes
	}
	if size <= maxSharded {
		c.shardMask = ^uint32(0)
	}
	least := min(16, 64<<10/size) // blocks
	for n := (least*size + int(c.first) + pageSize - 1) >> pageShift; c.pages == 0; n++ {
		blocks := (n<<pageShift - int(c.first)) / size
		if blocks*size*16 >= n<<pageShift*15 {
			c.pages, c.blocks = uint8(n), uint16(blocks)
		}
	}
	c.listAt = max(1, c.blocks/16)
	return c
}

// stable makes small spans, because only whole ones go back.
func (c class) stable() class {
	c.index, c.pages, c.blocks, c.listAt, c.untouched = stableClass, 1, pageSize/StableBlock, 1, stableHead
	return c
}

// blockAt returns which block of its span starts at offset off. The product
// with the inverse is exact: off < 1<<18 and size < 1<<17, so the error of the
// inverse, below size/size, stays under one unit of inverseShift.
func (c *class) blockAt(off Ref) uint {
	return uint(uint64(off-Ref(c.first)) * c.inverse >> inverseShift)
}
