package btree

import "github.com/rekindledb/rekindle/internal/epoch"

// isUnderfull says that a node should give its entries to a neighbour or get
// some from it. A pair of nodes whose entries take no more than mergedSize
// become one; otherwise both are well above the bound afterwards.
func (m meta) isUnderfull() bool {
	return m.used() < NodeSize/3 || m.level() > 0 && m.count() == 0
}

const mergedSize = NodeSize / 8 * 7

// outcome says what a try to shrink came to.
type outcome int

const (
	settled     outcome = iota // nothing is left to be done
	merged                     // the parent has lost a child
	parentFirst                // the node is an only child
)

// shrink repairs the underfull node at a level on the probe's path, then those
// above it.
func (t *Tree) shrink(h *epoch.Handle, p *probe, level int) error {
	for tries := 0; ; tries++ {
		done, err := t.shrinkLevel(h, p, level)
		if err != nil || done == settled || tries > 0 && done == parentFirst {
			return err
		}
		if err := t.shrink(h, p, level+1); err != nil || done == merged {
			return err
		}
	}
}

func (t *Tree) shrinkLevel(h *epoch.Handle, p *probe, level int) (outcome, error) {
	for attempt := 0; ; attempt++ {
		done, old, err := t.tryShrink(h, p, level)
		if err == nil {
			return done, t.dropLong(h, old.long, old.now)
		}
		if again, err := t.retry(h, err, attempt); !again {
			return settled, err
		}
	}
}

// stale is a separator that has left its node: its overflow pages, 0 for none,
// and the epoch of that change.
type stale struct{ long, now uint64 }

// tryShrink latches the parent, then the node and a neighbour; it does not wait
// for latches below others.
func (t *Tree) tryShrink(h *epoch.Handle, p *probe, level int) (done outcome, old stale, err error) {
	w := t.works.get()
	defer t.put(h, w)
	if err := t.trace(w, p); err != nil {
		return settled, old, err
	}
	at := len(w.path) - 1 - level
	if at == 0 && level > 0 && w.path[0].m.count() == 0 {
		return settled, old, t.lowerRoot(h, w)
	}
	if at <= 0 || !w.path[at].m.isUnderfull() {
		return settled, old, nil
	}
	parent := &w.path[at-1]
	if parent.m.count() == 0 {
		return parentFirst, old, nil
	}
	pr, err := t.pairUp(w, parent, &w.path[at])
	if err != nil {
		return settled, old, err
	}
	return t.even(h, w, pr)
}

// pair is two latched neighbours and their latched parent.
type pair struct {
	parent, left, right *guard
	sep                 int // the separator between them
	level               int
}

func (t *Tree) pairUp(w *work, parent, n *step) (pair, error) {
	sep := min(parent.i, parent.m.count()-1)
	other := sep
	if parent.i == sep {
		other++
	}
	neighbour, err := t.step(&parent.guard, parent.m, other)
	if err != nil {
		return pair{}, err
	}
	if neighbour.isImage() {
		return pair{}, &imageError{neighbour.id()}
	}
	w.leaves = append(w.leaves[:0], neighbour)
	pr := pair{&parent.guard, &n.guard, &w.leaves[0], sep, n.m.level()}
	if other < parent.i {
		pr.left, pr.right = pr.right, pr.left
	}
	if !pr.parent.tryLatch() || !pr.left.tryLatch() || !pr.right.tryLatch() {
		return pair{}, errRestart
	}
	return pr, nil
}

// even makes one node of two, or two that are about equally full.
func (t *Tree) even(h *epoch.Handle, w *work, pr pair) (outcome, stale, error) {
	lv := w.nextLevel()
	it := &lv.items
	if err := t.load(it, pr.left); err != nil {
		return settled, stale{}, err
	}
	if pr.level > 0 {
		if err := t.loadEntry(it, pr.parent, pr.sep); err != nil {
			return settled, stale{}, err
		}
		it.list[it.len()-1].val = pr.right.link()
	}
	if err := t.load(it, pr.right); err != nil {
		return settled, stale{}, err
	}
	if s := it.measure(pr.level, 0, it.len()); s.size <= mergedSize {
		return t.merge(h, it, pr)
	}
	return t.share(h, w, it, pr)
}

// merge moves everything to the left node.
func (t *Tree) merge(h *epoch.Handle, it *items, pr pair) (outcome, stale, error) {
	now := t.now()
	if err := t.own(h, pr.parent, now); err != nil {
		return settled, stale{}, err
	}
	if err := t.own(h, pr.left, now); err != nil {
		return settled, stale{}, err
	}
	var old stale
	link := pr.left.link()
	if pr.level == 0 {
		link = pr.right.link()
		old = stale{pr.parent.staleSeparator(pr.sep), now}
	}
	pr.left.rewrite(it, pr.level, 0, it.len(), link)
	pr.parent.take(pr.sep)
	pr.left.unlatch()
	pr.parent.unlatch()
	t.drop(h, pr.right, now)
	return merged, old, nil
}

// staleSeparator returns the overflow pages of a separator that goes.
func (n node) staleSeparator(i int) uint64 {
	m := n.meta()
	if !m.isSlotted() {
		return 0
	}
	return n.longWord(m, i)
}

// share moves entries from the fuller node to the other and puts the separator
// right; if there is no space for that, everything stays.
func (t *Tree) share(h *epoch.Handle, w *work, it *items, pr pair) (outcome, stale, error) {
	cut, ok := it.cut(pr.level, -1, false)
	if !ok {
		return settled, stale{}, nil
	}
	up := &w.nextLevel().items
	if err := t.load(up, pr.parent); err != nil {
		return settled, stale{}, err
	}
	key, sep, err := t.newSeparator(h, w, it, cut, pr)
	if err != nil {
		return settled, stale{}, err
	}
	sep.val = pr.right.word
	up.remove(pr.sep)
	up.insert(pr.sep, key, &sep)
	if s := up.measure(pr.level+1, 0, up.len()); !s.fits() {
		return settled, stale{}, nil
	}
	now := t.now()
	w.stamp(now)
	for _, g := range []*guard{pr.parent, pr.left, pr.right} {
		if err := t.own(h, g, now); err != nil {
			return settled, stale{}, err
		}
	}
	var old stale
	if pr.level == 0 {
		old = stale{pr.parent.staleSeparator(pr.sep), now}
	}
	pr.write(it, up, cut)
	for i := range w.fresh {
		w.fresh[i].unlatch()
	}
	w.fresh = w.fresh[:0]
	return settled, old, nil
}

func (t *Tree) newSeparator(h *epoch.Handle, w *work, it *items, cut int, pr pair) ([]byte, item, error) {
	if pr.level > 0 {
		e := it.list[cut]
		return it.key(cut), item{row: e.row, long: e.long}, nil
	}
	key, sep := separate(it, cut, pr.parent.meta())
	return key, sep, t.keepLong(h.Shard(), &w.fresh, key, &sep)
}

// write lays the three nodes out and unlatches them.
func (pr *pair) write(it, up *items, cut int) {
	n, link := it.len(), pr.left.link()
	if pr.level == 0 {
		pr.right.rewrite(it, 0, cut, n, pr.right.link())
	} else {
		pr.right.rewrite(it, pr.level, cut+1, n, it.list[cut].val)
	}
	pr.left.rewrite(it, pr.level, 0, cut, link)
	pr.parent.rewrite(up, pr.level+1, 0, up.len(), pr.parent.link())
	pr.right.unlatch()
	pr.left.unlatch()
	pr.parent.unlatch()
}

// lowerRoot puts an only child in the place of the root.
func (t *Tree) lowerRoot(h *epoch.Handle, w *work) error {
	root := &w.path[0]
	child := &w.path[1].guard
	if !root.tryLatch() || !child.tryLatch() {
		return errRestart
	}
	it := &w.nextLevel().items
	if err := t.load(it, child); err != nil {
		return err
	}
	now := t.now()
	if err := t.own(h, &root.guard, now); err != nil {
		return err
	}
	root.rewrite(it, child.meta().level(), 0, it.len(), child.link())
	root.unlatch()
	t.drop(h, child, now)
	return nil
}
