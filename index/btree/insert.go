package btree

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Insert adds (key, row). The key's latch is the latch of the leaf in which
// the key's entries begin, together with those in which they go on; without a
// checker, that of the leaf of (key, row) alone.
// Errors: the checker's own; fault.ErrKeyTooLarge; fault.ErrMemoryLimit.
func (t *Tree) Insert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	checkPin(h)
	if err := t.checkKey(key); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		added, err := t.tryInsert(h, key, row, unique)
		if err == nil {
			if added {
				t.count.add(h.Shard(), 1, 0)
			}
			return nil
		}
		if again, err := t.retry(h, err, attempt); !again {
			return err
		}
	}
}

// tryInsert is the short way: all entries of the key are in one leaf and the
// new one fits in there.
func (t *Tree) tryInsert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) (added bool, err error) {
	p := newProbe(key, uint64(row))
	if unique != nil {
		p.row = 0
	}
	leaf, spans, err := t.seek(&p, upTo)
	if err != nil {
		return false, err
	}
	if leaf.isImage() && unique == nil {
		return false, t.wantImage(&leaf, &p, false)
	}
	if leaf.isImage() {
		return false, &imageError{leaf.id()}
	}
	if spans && unique != nil || len(key) > inlineKey {
		return t.insertLong(h, key, row, unique)
	}
	if !leaf.tryLatch() {
		return false, errRestart
	}
	added, full, err := t.insertInto(h, &leaf, &p, row, unique)
	if !added {
		leaf.unlatchSame()
	}
	if full {
		return t.insertLong(h, key, row, unique)
	}
	return added, err
}

// insertInto adds the entry to a latched leaf that all entries of the key are
// in, and unlatches it if it did.
func (t *Tree) insertInto(h *epoch.Handle, leaf *guard, p *probe, row rowid.ID, unique index.Checker) (added, full bool, err error) {
	if unique != nil {
		if _, err := t.check(leaf, p, row, unique); err != nil {
			return false, false, err
		}
		p.row = uint64(row)
	}
	i, present, err := t.locate(leaf, p)
	if present || err != nil {
		return false, false, err
	}
	if err := t.own(h, leaf, t.now()); err != nil {
		return false, false, err
	}
	if !leaf.put(p, i, &item{row: p.row, val: p.row}) {
		return false, true, nil
	}
	leaf.unlatch()
	return true, false, nil
}

// locate returns the place of (key, row) in a latched leaf.
func (t *Tree) locate(g *guard, p *probe) (i int, present bool, err error) {
	m := g.meta()
	if i, err = t.search(g, m, p, below); err != nil || i == m.count() || g.index(m.vals(), i) != p.row {
		return i, false, err
	}
	present, err = t.sameKey(g, m, i, p)
	return i, present, err
}

// check puts the rows that a latched leaf has under the probe's key to the
// checker. More reports that the leaf ended before a higher key came.
func (t *Tree) check(g *guard, p *probe, row rowid.ID, unique index.Checker) (more bool, err error) {
	m := g.meta()
	i, err := t.search(g, m, p, below)
	for ; err == nil && i < m.count(); i++ {
		same, err := t.sameKey(g, m, i, p)
		if !same || err != nil {
			return false, err
		}
		if other := rowid.ID(g.index(m.vals(), i)); other != row {
			if err := unique.Check(other); err != nil {
				return false, err
			}
		}
	}
	return err == nil, err
}

// insertLong is the way for all cases. The path is taken before anything is
// latched; latches are then taken to the right and upwards only.
func (t *Tree) insertLong(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) (added bool, err error) {
	w := t.works.get()
	defer t.put(h, w)
	p := newProbe(key, uint64(row))
	if err := t.trace(w, &p); err != nil {
		return false, err
	}
	if unique == nil {
		err = w.latchLeaf()
	} else {
		err = t.latchKey(w, key, row, unique)
	}
	if err != nil {
		return false, err
	}
	leaf := t.tracedLeaf(w)
	if leaf == nil {
		return false, errRestart
	}
	i, present, err := t.locate(leaf, &p)
	if err != nil || present {
		return false, err
	}
	return true, t.grow(h, w, leaf, &p, i)
}

// latchLeaf latches the leaf at the end of the path, whatever its version is by
// now. That it is still the right one shows in its parent.
func (w *work) latchLeaf() error {
	w.leaves = append(w.leaves[:0], w.path[len(w.path)-1].guard)
	if !w.leaves[0].latch() {
		return errRestart
	}
	return nil
}

// latchKey latches every leaf that can have entries of the key and asks the
// checker about them.
func (t *Tree) latchKey(w *work, key []byte, row rowid.ID, unique index.Checker) error {
	w.leaves = w.leaves[:0]
	p := newProbe(key, 0)
	leaf, _, err := t.seek(&p, upTo)
	for more := true; more; {
		if err != nil {
			return err
		}
		if leaf.isImage() {
			return &imageError{leaf.id()}
		}
		if !leaf.tryLatch() {
			return errRestart
		}
		w.leaves = append(w.leaves, leaf)
		if more, err = t.check(&leaf, &p, row, unique); err != nil || !more {
			return err
		}
		leaf, more, err = t.next(&leaf)
	}
	return err
}

// tracedLeaf returns the latched leaf that the path leads to, if it is among
// those latched. It still has its place: the path's parent is unchanged, which it
// would not be if the range of one of its children was another. But its block may
// have been replaced and be another node by now.
func (t *Tree) tracedLeaf(w *work) *guard {
	end := len(w.path) - 1
	if end > 0 && !w.path[end-1].valid() {
		return nil
	}
	for i := range w.leaves {
		g := &w.leaves[i]
		if g.p != w.path[end].p || g.meta().level() != 0 {
			continue
		}
		if t.store == nil || g.id() == idOf(w.path[end].word) {
			return g
		}
	}
	return nil
}
