package btree

import (
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/arena"
)

// Header is what a store needs to know of a node.
type Header struct {
	ID      NodeID
	Inner   bool   // it has children
	Epoch   uint64 // stamp of the content
	Entries int    // of a leaf; 0 for other nodes
}

// HeaderOf describes a node whose content does not change: an image, a copy, or
// a block that was handed over.
func HeaderOf(p unsafe.Pointer) Header {
	n := node{p}
	h := Header{ID: n.id(), Epoch: n.epoch()}
	switch m := n.meta(); m.level() {
	case 0:
		h.Entries = m.count()
	case overflowLevel:
	default:
		h.Inner = true
	}
	return h
}

// Peek describes the node in a block of a tree in use. It reports false if the
// node is obsolete or being changed.
func Peek(block unsafe.Pointer) (h Header, ok bool) {
	n := node{block}
	v := n.word(versionAt)
	h = HeaderOf(block)
	return h, v&(latched|obsolete) == 0 && n.word(versionAt) == v
}

// NodeCopy is the content of a node, fit for HeaderOf and AppendImage.
type NodeCopy [nodeWords]uint64

// Pointer is the copy as a block.
func (c *NodeCopy) Pointer() unsafe.Pointer { return unsafe.Pointer(c) }

// CopyBlock copies the node in a block of a tree in use. It waits while the node
// is latched, and reports false if the block may have become another node in the
// meantime. What it copies is of one piece if its epoch has ended.
func CopyBlock(dst *NodeCopy, block unsafe.Pointer) bool {
	n := node{block}
	v := n.await()
	for i := range dst {
		dst[i] = n.word(8 * uintptr(i))
	}
	return n.word(versionAt)&^latched == v
}

// Chain makes next follow block in a list of blocks that are no longer in the
// tree. It stands where the hint of the link was, which no one follows any more,
// so contents stay as they are.
func Chain(block unsafe.Pointer, next arena.Ref) {
	n := node{block}
	n.setWord(linkAt, childWord(idOf(n.link()), next))
}

// Chained returns what Chain has made to follow block, 0 for nothing.
func Chained(block unsafe.Pointer) arena.Ref { return hintOf(node{block}.link()) }

// Demote puts an image in the place of the node in a block: image is the entry of
// one with the content that the node has had since the epoch newest or longer. It
// reports whether it did: else the node was changed since, is being changed, or has
// gone. The block is the caller's then; readers may still be in it, but notice
// before they use anything.
func Demote(entry *atomic.Uint64, block unsafe.Pointer, ref arena.Ref, id NodeID, newest, image uint64) bool {
	n := node{block}
	g := guard{n, n.p, n.word(versionAt), childWord(id, ref)}
	if g.seen&(latched|obsolete) != 0 || !g.tryLatch() {
		return false
	}
	if g.id() != id || g.epoch() > newest || entry.Load() != uint64(ref) {
		g.unlatchSame()
		return false
	}
	entry.Store(image) // only who holds the latch changes it
	g.unlatchObsolete()
	return true
}

// InitBlock makes a block of NodeSize bytes from the arena one that NewBlock may
// return. Its past may show, but is over.
func InitBlock(block unsafe.Pointer) { atomic.StoreUint64((*uint64)(block), obsolete) }
