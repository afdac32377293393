package iacow

import (
	"errors"
	"fmt"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// validate looks through the whole index: the tree, and that the node table has
// no more than the tree's nodes. Nothing changes the index meanwhile.
func (x *Index) validate() error {
	h := x.spec.Domain.Register()
	h.Pin()
	defer h.Unpin()
	if err := x.tree.Validate(); err != nil {
		return err
	}
	return x.store.validate(x.tree.Stats().Bytes / btree.NodeSize)
}

// isDamage tells an error for a damaged file.
func isDamage(err error) bool {
	var f *fault.File
	return errors.As(err, &f)
}

func (s *store) validate(nodes int64) error {
	inUse, blocks := int64(0), int64(0)
	for id := uint64(1); id < s.next; id++ {
		g, ok := s.page(uint32(id >> pageShift))
		if !ok {
			var err error
			if g, err = s.use(btree.NodeID(id)); err != nil {
				return err
			}
		}
		e := entry(g.entry(int(id % pageIDs)).Load())
		if e == 0 {
			continue
		}
		inUse++
		if e.inFile() {
			continue
		}
		blocks++
		if h := btree.HeaderOf(s.block(arena.Ref(e))); uint64(h.ID) != id {
			return fmt.Errorf("block of node %d has node %d", id, h.ID)
		}
	}
	if inUse != nodes {
		return fmt.Errorf("the node table has %d nodes, the tree %d", inUse, nodes)
	}
	if pooled := s.pool.count; blocks+pooled != s.held.Load() {
		return fmt.Errorf("%d blocks are taken, %d in use and %d pooled", s.held.Load(), blocks, pooled)
	}
	return nil
}
