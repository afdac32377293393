package btree

import (
	"errors"

	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// Remove takes (key, row) out if dead, asked under the latch of the entry's
// leaf, says so. That latch is part of the key's latch: an insertion with a
// checker holds it while it asks.
func (t *Tree) Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	checkPin(h)
	p := newProbe(key, uint64(row))
	for attempt := 0; ; attempt++ {
		r, err := t.tryRemove(h, &p, dead)
		if err == nil && r.removed {
			t.count.add(h.Shard(), -1, 0)
			err = t.afterRemove(h, &p, r)
			return true, err
		}
		if err == nil {
			return false, nil
		}
		if again, err := t.retry(h, err, attempt); !again {
			return false, err
		}
	}
}

// removal is the outcome of a try.
type removal struct {
	removed bool
	sparse  bool   // the leaf is underfull now
	long    uint64 // overflow pages left over
	now     uint64 // epoch of the change
}

func (t *Tree) tryRemove(h *epoch.Handle, p *probe, dead func() bool) (r removal, err error) {
	leaf, _, err := t.seek(p, upTo)
	if err != nil {
		return r, err
	}
	if leaf.isImage() {
		return r, t.wantImage(&leaf, p, true)
	}
	if !leaf.tryLatch() {
		return r, errRestart
	}
	i, present, err := t.locate(&leaf, p)
	if err == nil && present && dead() {
		r.now = t.now()
		err = t.own(h, &leaf, r.now)
		r.removed = err == nil
	}
	if !r.removed {
		leaf.unlatchSame()
		return r, err
	}
	m := leaf.meta()
	if m.isSlotted() {
		r.long = leaf.longWord(m, i)
	}
	leaf.take(i)
	r.sparse = leaf.meta().isUnderfull()
	leaf.unlatch()
	return r, nil
}

// wantImage looks before the image of a leaf is copied in order to be changed:
// the result is nil if (key, row) need not be changed there, because it is
// wanted present or absent and is so.
func (t *Tree) wantImage(g *guard, p *probe, present bool) error {
	m := g.meta()
	if !m.sane() {
		return t.damaged(g)
	}
	_, found, err := t.locate(g, p)
	switch {
	case err != nil:
		return err
	case found == present:
		return &imageError{g.id()}
	case !g.valid():
		return errRestart
	default:
		return nil
	}
}

// longWord returns the child word of the overflow pages of entry i, or 0.
func (n node) longWord(m meta, i int) uint64 {
	if s := n.slot(m, i); s.isLong() {
		return n.heapWord(s.at())
	}
	return 0
}

// afterRemove does what removing an entry makes possible. If the memory for it
// is lacking the leaf stays as it is, underfull but right.
func (t *Tree) afterRemove(h *epoch.Handle, p *probe, r removal) error {
	if err := t.dropLong(h, r.long, r.now); err != nil {
		return err
	}
	if !r.sparse {
		return nil
	}
	if err := t.shrink(h, p, 0); !errors.Is(err, fault.ErrMemoryLimit) {
		return err
	}
	return nil
}
