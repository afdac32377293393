package btree

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// Config says what a tree is made of. Arena and Store outlive it.
type Config struct {
	Arena *arena.Arena
	Store Store  // node table; nil = child words are arena addresses
	Owner uint32 // with a store: the owner that nodes in memory name
	Shard uint32 // of the arena, for the nodes that a Builder makes
	Table string // for errors
	Index string // for errors
}

// Tree is a concurrent B+tree of entries (key, RowID). Its methods, Close
// excepted, may be called from any number of goroutines, each with a pinned
// handle of its own.
type Tree struct {
	arena *arena.Arena
	store Store
	owner uint64        // in the place where nodes have it
	shard uint32        // Config.Shard
	root  atomic.Uint64 // child word of the root, the same node for the life of the tree
	table string
	index string

	count counters
	works workList
}

var _ index.Index = (*Tree)(nil)

// New returns an empty tree. The error is fault.ErrMemoryLimit or the store's.
func New(c Config) (*Tree, error) {
	t := newTree(c)
	root, err := t.newNode(arena.Checkpoint.Shard(0)) // there is one a tree, and no checkpoint without it
	if err != nil {
		return nil, err
	}
	root.rewrite(new(items), 0, 0, 0, 0)
	root.unlatch()
	t.root.Store(root.word)
	return t, nil
}

// Open returns the tree whose root is the node root of the store, with as many
// entries and nodes as its creator last knew of.
func Open(c Config, root NodeID, entries, nodes int64) *Tree {
	t := newTree(c)
	t.root.Store(childWord(root, 0))
	t.count.add(0, entries, nodes)
	return t
}

func newTree(c Config) *Tree {
	return &Tree{arena: c.Arena, store: c.Store, owner: uint64(c.Owner) << ownerShift, shard: c.Shard, table: c.Table, index: c.Index}
}

// Root returns the id of the root, which is fixed, for Open.
func (t *Tree) Root() NodeID { return idOf(t.root.Load()) }

// Stats counts the nodes and overflow pages of the tree. What a store keeps
// beside them is its own affair.
func (t *Tree) Stats() index.Stats {
	entries, nodes := t.count.sum()
	return index.Stats{Entries: entries, Bytes: nodes * NodeSize}
}

// imageError says that an image would have to be read under a latch.
type imageError struct{ id NodeID }

func (e *imageError) Error() string {
	return fmt.Sprintf("btree: image of node %d under a latch", e.id)
}

// retry decides whether the attempt-th try of an operation is to be repeated
// after err, and makes way for the next one.
func (t *Tree) retry(h *epoch.Handle, err error, attempt int) (bool, error) {
	if err == errRestart {
		pause(attempt)
		return true, nil
	}
	var image *imageError
	if errors.As(err, &image) {
		err = t.materialise(h, image.id)
		return err == nil || err == errRestart, err
	}
	return false, err
}

// checkPin finds callers that have forgotten to pin.
func checkPin(h *epoch.Handle) {
	if invariants.Enabled && !h.Pinned() {
		invariants.Fail("btree: operation without a pin")
	}
}

// damaged is the error for a node that makes no sense: a torn read, or else an
// image that passed its checksum and is wrong all the same.
func (t *Tree) damaged(g *guard) error {
	if !g.valid() {
		return errRestart
	}
	return fmt.Errorf("btree: index %s.%s: node %d is malformed: %w", t.table, t.index, g.id(), fault.ErrCorrupt)
}

func (t *Tree) checkKey(key []byte) error {
	if len(key) > MaxKey {
		return &fault.TooLarge{Kind: fault.ErrKeyTooLarge, Table: t.table, Index: t.index, Size: len(key), Limit: MaxKey}
	}
	return nil
}
