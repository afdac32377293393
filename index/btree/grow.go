package btree

import (
	"fmt"

	"github.com/rekindledb/rekindle/internal/epoch"
)

// level is what an insertion does to one latched node.
type level struct {
	g     *guard
	m     meta
	i     int // place of the new entry
	entry item
	key   []byte // of the new entry

	kind  change
	items items // all entries with the new one; not for putting
	cut   int   // splitting: the first entry of the right half
	right int   // place in work.fresh of the right half, behind it the left one of a root
	sep   items // splitRoot: the one separator of the new root
}

// change says how a node takes a new entry.
type change int

const (
	putting   change = iota // it fits into the layout
	rewriting               // it fits into a new layout
	splitting               // the right half moves to a new node
	splitRoot               // both halves move, the root gets a level higher
)

// slack is the space in bytes that a new layout of a node with slots must leave
// free. Otherwise it is split, so that full nodes are not laid out for every
// entry.
const slack = 64

// grow puts an entry at place i of a latched leaf and splits what must be
// split. It first latches, plans and allocates everything; then nothing can
// fail any more.
func (t *Tree) grow(h *epoch.Handle, w *work, leaf *guard, p *probe, i int) error {
	entry := item{row: p.row, val: p.row}
	if err := t.keepLong(h.Shard(), &w.fresh, p.key, &entry); err != nil {
		return err
	}
	if err := t.plan(h, w, leaf, p.key, entry, i); err != nil {
		return err
	}
	if err := t.prepare(h, w); err != nil {
		return err
	}
	w.apply()
	w.unlatchChanged()
	return nil
}

// plan latches the ancestors that change and decides how.
func (t *Tree) plan(h *epoch.Handle, w *work, leaf *guard, key []byte, entry item, i int) error {
	g := leaf
	rightmost := leaf.link() == 0
	for depth := len(w.path) - 1; ; depth-- {
		lv := w.nextLevel()
		lv.g, lv.m, lv.i, lv.key, lv.entry = g, g.meta(), i, key, entry
		if err := t.planLevel(lv, depth == 0, rightmost); err != nil || lv.kind < splitting {
			return err
		}
		if depth == 0 {
			return t.planRoot(h, w, lv)
		}
		parent := &w.path[depth-1]
		if !parent.tryLatch() {
			return errRestart
		}
		var err error
		if key, entry, err = t.promote(h, w, lv, parent.m); err != nil {
			return err
		}
		g, i = &parent.guard, parent.i
	}
}

func (t *Tree) planRoot(h *epoch.Handle, w *work, lv *level) error {
	key, entry, err := t.promote(h, w, lv, 0)
	if err == nil {
		lv.sep.add(key, &entry)
	}
	return err
}

func (t *Tree) planLevel(lv *level, isRoot, rightmost bool) error {
	p := newProbe(lv.key, 0)
	p.align(lv.g.node, lv.m.prefix())
	if lv.g.canPut(&p, &lv.entry) {
		lv.kind = putting
		return nil
	}
	if err := t.load(&lv.items, lv.g); err != nil {
		return err
	}
	lv.items.insert(lv.i, lv.key, &lv.entry)
	n := lv.items.len()
	if s := lv.items.measure(lv.m.level(), 0, n); s.fits() && (s.length != slotted || s.size+slack <= NodeSize) {
		lv.kind = rewriting
		return nil
	}
	lv.kind = splitting
	if isRoot {
		lv.kind = splitRoot
	}
	var ok bool
	if lv.cut, ok = lv.items.cut(lv.m.level(), lv.i, rightmost); !ok {
		return fmt.Errorf("btree: index %s.%s: %d entries fit in no two nodes", t.table, t.index, n)
	}
	return nil
}

// promote returns the separator for the parent of a node that is split. Its
// child word is filled in when the new node is there.
func (t *Tree) promote(h *epoch.Handle, w *work, lv *level, parent meta) ([]byte, item, error) {
	up := &lv.items.list[lv.cut]
	if lv.m.level() > 0 {
		return lv.items.key(lv.cut), item{row: up.row, long: up.long}, nil
	}
	key, sep := separate(&lv.items, lv.cut, parent)
	return key, sep, t.keepLong(h.Shard(), &w.fresh, key, &sep)
}

// separate makes a separator between the leaf entries cut−1 and cut: of a key
// that they share all and the row; otherwise as much of the right one's key as
// tells them apart, and as the parent has of its other keys, so that those are
// of one length.
func separate(it *items, cut int, parent meta) ([]byte, item) {
	left, right := it.key(cut-1), it.key(cut)
	shared := commonPrefix(left, right)
	if shared == len(right) {
		return right, item{row: it.list[cut].row}
	}
	return right[:separatorLength(shared, len(right), parent)], item{}
}

func separatorLength(shared, length int, parent meta) int {
	want := shared + 8
	if parent.count() > 0 && !parent.isSlotted() {
		want = parent.prefix() + parent.length()
	}
	return min(max(want, shared+1), length)
}

// prepare allocates the new nodes and makes the latched ones fit to be changed.
func (t *Tree) prepare(h *epoch.Handle, w *work) error {
	for i := range w.levels {
		lv := &w.levels[i]
		lv.right = len(w.fresh)
		for range nodesFor[lv.kind] {
			g, err := t.newNode(h.Shard())
			if err != nil {
				return err
			}
			w.fresh = append(w.fresh, g)
		}
	}
	now := t.now()
	w.stamp(now)
	for i := range w.levels {
		if err := t.own(h, w.levels[i].g, now); err != nil {
			return err
		}
	}
	return nil
}

// nodesFor says how many new nodes a change takes.
var nodesFor = [...]int{putting: 0, rewriting: 0, splitting: 1, splitRoot: 2}

// apply makes the changes from the leaf up.
func (w *work) apply() {
	var child uint64
	for i := range w.levels {
		lv := &w.levels[i]
		if i > 0 {
			lv.entry.val = child
			if lv.kind != putting {
				lv.items.list[lv.i].val = child
			}
		}
		child = lv.apply(w.fresh)
	}
}

// apply returns the word of the new node on the right, if there is one.
func (lv *level) apply(fresh []guard) (right uint64) {
	switch lv.kind {
	case putting:
		p := newProbe(lv.key, 0)
		p.align(lv.g.node, lv.m.prefix())
		lv.g.put(&p, lv.i, &lv.entry)
	case rewriting:
		lv.g.rewrite(&lv.items, lv.m.level(), 0, lv.items.len(), lv.g.link())
	case splitting:
		right = lv.split(lv.g.node, &fresh[lv.right])
	case splitRoot:
		left := &fresh[lv.right+1]
		right = lv.split(left.node, &fresh[lv.right])
		lv.sep.list[0].val = right
		lv.g.rewrite(&lv.sep, lv.m.level()+1, 0, 1, left.word)
	}
	return right
}

// split writes the two halves. Of an inner node the entry between them is the
// parent's separator, and its child the leftmost one of the right half.
func (lv *level) split(left node, right *guard) uint64 {
	it, n, link := &lv.items, lv.items.len(), lv.g.link()
	if lv.m.level() == 0 {
		right.rewrite(it, 0, lv.cut, n, link)
		left.rewrite(it, 0, 0, lv.cut, right.word)
	} else {
		right.rewrite(it, lv.m.level(), lv.cut+1, n, it.list[lv.cut].val)
		left.rewrite(it, lv.m.level(), 0, lv.cut, link)
	}
	return right.word
}

// unlatchChanged makes the change visible. What else is latched was not
// changed.
func (w *work) unlatchChanged() {
	for i := range w.fresh {
		w.fresh[i].unlatch()
	}
	w.fresh = w.fresh[:0]
	for i := range w.levels {
		w.levels[i].g.unlatch()
	}
}
