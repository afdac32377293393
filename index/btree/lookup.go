package btree

import (
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// patience is how often a read is disturbed before it latches its leaves.
const patience = 2 * spins

// Lookup appends the rows of all entries with exactly this key, ascending.
func (t *Tree) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	checkPin(h)
	p := newProbe(key, 0)
	for attempt := 0; ; attempt++ {
		rows, err := t.tryLookup(&p, dst, attempt > patience)
		if err == nil {
			return rows, nil
		}
		if again, err := t.retry(h, err, attempt); !again {
			return dst, err
		}
	}
}

func (t *Tree) tryLookup(p *probe, dst []rowid.ID, latch bool) ([]rowid.ID, error) {
	leaf, spans, err := t.seek(p, upTo)
	if err != nil {
		return dst, err
	}
	for {
		if err = leaf.hold(latch); err != nil {
			return dst, err
		}
		more := false
		dst, more, err = t.appendRows(dst, &leaf, p)
		if err = leaf.letGo(err); err != nil || !spans || !more {
			return dst, err
		}
		if leaf, more, err = t.next(&leaf); !more {
			return dst, err
		}
	}
}

// appendRows appends the rows of the entries with the probe's key. More
// reports that it came to the end of the leaf.
func (t *Tree) appendRows(dst []rowid.ID, g *guard, p *probe) (_ []rowid.ID, more bool, err error) {
	m := g.meta()
	if !m.sane() {
		return dst, false, t.damaged(g)
	}
	i, err := t.search(g, m, p, below)
	for ; err == nil && i < m.count(); i++ {
		same, err := t.sameKey(g, m, i, p)
		if !same || err != nil {
			return dst, false, err
		}
		dst = append(dst, rowid.ID(g.index(m.vals(), i)))
	}
	return dst, err == nil, err
}
