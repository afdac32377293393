package btree

import (
	"sync"

	"github.com/rekindledb/rekindle/internal/epoch"
)

// work is the memory of an operation that changes more than one leaf.
type work struct {
	path   []step  // from the root to a node
	leaves []guard // latched leaves of one key, left to right
	levels []level // of a change, from the leaf up
	fresh  []guard // new nodes, not linked yet
}

// step is a node on a path and the child that the path takes.
type step struct {
	guard
	m meta
	i int
}

// workList lends working memory.
type workList struct{ pool sync.Pool }

func (l *workList) get() *work {
	if w, ok := l.pool.Get().(*work); ok {
		return w
	}
	return new(work)
}

// put takes w back and lets go of every latch that an abandoned change holds.
func (t *Tree) put(h *epoch.Handle, w *work) {
	for i := range w.path {
		if g := &w.path[i].guard; g.isLatched() {
			g.unlatchSame()
		}
	}
	for i := range w.leaves {
		if g := &w.leaves[i]; g.isLatched() {
			g.unlatchSame()
		}
	}
	for i := range w.fresh {
		t.discard(h.Shard(), &w.fresh[i])
	}
	w.path, w.leaves, w.levels, w.fresh = w.path[:0], w.leaves[:0], w.levels[:0], w.fresh[:0]
	t.works.pool.Put(w)
}

// nextLevel returns the next element of w.levels with its buffers kept.
func (w *work) nextLevel() *level {
	if len(w.levels) < cap(w.levels) {
		w.levels = w.levels[:len(w.levels)+1]
	} else {
		w.levels = append(w.levels, level{})
	}
	lv := &w.levels[len(w.levels)-1]
	lv.items.reset()
	*lv = level{items: lv.items}
	return lv
}

// stamp makes new nodes belong to the epoch of the change, which may be a later
// one than that in which they were made.
func (w *work) stamp(now uint64) {
	for i := range w.fresh {
		w.fresh[i].setWord(epochAt, now)
	}
}

// trace records the path to the leaf where the probe's place is. No node on it
// is an image.
func (t *Tree) trace(w *work, p *probe) error {
	w.path = w.path[:0]
	g, err := t.enterRoot()
	for err == nil {
		if g.isImage() {
			return &imageError{g.id()}
		}
		m := g.meta()
		if !m.sane() {
			return t.damaged(&g)
		}
		w.path = append(w.path, step{guard: g, m: m})
		if m.level() == 0 {
			return nil
		}
		last := &w.path[len(w.path)-1]
		if last.i, err = t.search(&g, m, p, upTo); err == nil {
			g, err = t.step(&g, m, last.i)
		}
	}
	return err
}
