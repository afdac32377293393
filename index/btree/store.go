package btree

import (
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/arena"
)

// NodeID names a node in a node table. 0 is no node.
type NodeID uint32

// ImageBit is set in a node table's entry that leads to an image: the store
// alone knows what the other bits mean. Clear, the entry is the arena.Ref of
// the node, and 0 is a free id.
const ImageBit = 1 << 63

// Store is the node table of a tree whose child words are node ids. It owns
// ids and blocks; the tree asks it on every path but the one along a true
// address hint. All methods may be called at any time from any goroutine; those
// that take over something are called with latches held and must not block.
type Store interface {
	// Entry returns the table's word for id, at one place for the life of the
	// tree. The tree changes it by CAS and store.
	Entry(id NodeID) (*atomic.Uint64, error)
	// Image returns the NodeSize bytes that an entry with ImageBit stands for:
	// verified, immutable, 8-byte aligned, readable until no pin older than
	// their replacement exists. Never called with a latch held.
	Image(id NodeID, entry uint64) (unsafe.Pointer, error)

	// Epoch returns the current epoch. Nodes are stamped with it; one stamped
	// otherwise is copied before its first change.
	Epoch() uint64

	// NewID returns a free id.
	NewID(shard uint32) (NodeID, error)
	// NewBlock returns a block of NodeSize bytes. Its first word is the version
	// at which an earlier node in it ended, or 0: blocks that were nodes of the
	// tree stay its nodes, since stale hints may lead to them.
	NewBlock(shard uint32) (arena.Ref, error)
	// FreeBlock takes back a block that no reader needs.
	FreeBlock(shard uint32, ref arena.Ref)

	// Replaced takes over a copy of id that is obsolete: old is its entry, epoch
	// the stamp of its content, now that of the newer copy. The table gets the
	// newer one after the call, so whoever finds it there can find the old one
	// with the store. Readers may still be in it, but notice before they use
	// anything. An image is replaced by a copy with the same content and stamp,
	// and reported after.
	Replaced(shard uint32, id NodeID, old, epoch, now uint64)
	// Dropped takes over id and its last copy when the node left the tree: last
	// is the entry, which is the store's to clear before the id is used again,
	// now the epoch of the change that unlinked it, or the stamp if it never was
	// in the tree.
	Dropped(shard uint32, id NodeID, last, epoch, now uint64)
}

// A child word of a tree with a store: the id below, above it a hint, the
// address of the node in units of its size. 0 is no hint.
const (
	hintShift = 32
	blockBits = 11 // log2 of NodeSize
	maxHint   = 1 << (64 - hintShift + blockBits)
)

func idOf(w uint64) NodeID { return NodeID(w) }

func hintOf(w uint64) arena.Ref { return arena.Ref(w >> hintShift << blockBits) }

func childWord(id NodeID, ref arena.Ref) uint64 {
	return uint64(id) | uint64(ref)>>blockBits<<hintShift
}

var _ = [1]struct{}{}[NodeSize-1<<blockBits]
