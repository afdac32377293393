package iacow

import (
	"fmt"

	"github.com/rekindledb/rekindle/index/btree"
)

// entry is a word of the node table for a node in a file, the same in files and
// in memory:
//
//	bits  0-31  block of the node in the file
//	     32-39  number of entries of a leaf, 0 for other nodes
//	     56-59  place of the file in the generation table
//	     63     1 (btree.ImageBit)
//
// 0 is a free id. In memory a word without bit 63 is the arena.Ref of the node.
type entry uint64

const (
	countShift = 32
	placeShift = 56

	maxEntries = 255 // of a leaf
	entryBits  = entry(btree.ImageBit | (placeCount-1)<<placeShift | maxEntries<<countShift | (1<<countShift - 1))
)

func makeEntry(place int, block uint32, count int) entry {
	return btree.ImageBit | entry(place)<<placeShift | entry(count)<<countShift | entry(block)
}

func (e entry) block() uint32 { return uint32(e) }
func (e entry) count() int    { return int(e >> countShift & maxEntries) }
func (e entry) place() int    { return int(e >> placeShift & (placeCount - 1)) }

func (e entry) inFile() bool { return e&btree.ImageBit != 0 }

func (e entry) String() string {
	if !e.inFile() {
		return fmt.Sprintf("%#x", uint64(e))
	}
	return fmt.Sprintf("block %d of place %d, %d entries", e.block(), e.place(), e.count())
}

// check returns what is wrong with a non-zero entry read from a file.
func (e entry) check(places *[placeCount]generation) string {
	g := &places[e.place()]
	switch {
	case e&^entryBits != 0 || !e.inFile():
		return "entry with unknown bits"
	case !g.used():
		return "entry refers to no generation"
	case e.block() == 0 || uint64(e.block()) > g.nodes:
		return "entry refers to no node"
	}
	return ""
}
