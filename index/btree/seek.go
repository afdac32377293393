package btree

// seek descends to the leaf that the probe's place is in: with upTo where
// (key, row) would be, with below where the entry before it would be.
// Spans reports that the entries of a key may go on in the leaf's right
// neighbour: the separator between them has a row. Both results count only as
// long as the leaf is valid.
func (t *Tree) seek(p *probe, bias int) (leaf guard, spans bool, err error) {
	g, err := t.enterRoot()
	for err == nil {
		m := g.meta()
		if !m.sane() {
			return g, false, t.damaged(&g)
		}
		if m.level() == 0 {
			return g, spans, nil
		}
		var i int
		if i, err = t.search(&g, m, p, bias); err != nil {
			break
		}
		if i < m.count() {
			spans = m.isSlotted() && g.slot(m, i).hasRow()
		}
		g, err = t.step(&g, m, i)
	}
	return g, false, err
}

// enterRoot keeps the root's hint true.
func (t *Tree) enterRoot() (guard, error) {
	w := t.root.Load()
	g, err := t.enter(w)
	if g.word != w && err == nil {
		t.root.CompareAndSwap(w, g.word)
	}
	return g, err
}

// step goes from g to its child i. Two checks of g: before the child word is
// followed it must be a true one, and the child's version must be one that it
// had while it was the child.
func (t *Tree) step(g *guard, m meta, i int) (guard, error) {
	w := g.child(m, i)
	if !g.valid() {
		return guard{}, errRestart
	}
	child, err := t.enter(w)
	if err != nil {
		return child, err
	}
	if !g.valid() {
		return child, errRestart
	}
	if child.word != w {
		g.mend(m, i, child.word)
	}
	return child, nil
}

// mend replaces the hint of child i, which was missing or stale. The node says
// the same as before, so its version and its stamp stay.
func (g *guard) mend(m meta, i int, w uint64) {
	mine := g.isLatched()
	if g.isImage() || !mine && !g.tryLatch() {
		return
	}
	g.setChild(m, i, w)
	if !mine {
		g.unlatchSame()
	}
}

// next goes from a leaf to its right neighbour; ok is false if there is none.
func (t *Tree) next(g *guard) (leaf guard, ok bool, err error) {
	w := g.link()
	if !g.valid() {
		return guard{}, false, errRestart
	}
	if w == 0 {
		return guard{}, false, nil
	}
	leaf, err = t.enter(w)
	if err != nil {
		return guard{}, false, err
	}
	if !g.valid() {
		return guard{}, false, errRestart
	}
	if leaf.word != w {
		g.mend(0, 0, leaf.word)
	}
	return leaf, true, nil
}
