package btree

import (
	"errors"

	"github.com/rekindledb/rekindle/internal/arena"
)

// Close frees all nodes. No other call is running or follows. The arena and
// the store stay with their owner.
func (t *Tree) Close() error {
	entries, nodes := t.count.sum()
	err := t.free(t.root.Load())
	t.root.Store(0)
	t.count.add(0, -entries, -nodes)
	return err
}

// free frees a node and all below it.
func (t *Tree) free(w uint64) error {
	g, err := t.enter(w)
	if err != nil {
		return err
	}
	m := g.meta()
	var errs []error
	if m.level() == overflowLevel {
		if g.link() != 0 {
			errs = append(errs, t.free(g.link()))
		}
	} else {
		errs = append(errs, t.freeBelow(&g, m))
	}
	if t.store != nil {
		t.store.Dropped(0, g.id(), g.entry(), g.epoch(), g.epoch())
	} else {
		t.arena.Free(0, arena.Ref(g.word), NodeSize)
	}
	return errors.Join(errs...)
}

// freeBelow frees children and overflow pages.
func (t *Tree) freeBelow(g *guard, m meta) error {
	var errs []error
	for i := range m.count() {
		if m.isSlotted() && g.slot(m, i).isLong() {
			errs = append(errs, t.free(g.longWord(m, i)))
		}
	}
	if m.level() > 0 {
		for i := range m.count() + 1 {
			errs = append(errs, t.free(g.child(m, i)))
		}
	}
	return errors.Join(errs...)
}
