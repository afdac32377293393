package btree

// canPut reports whether an entry fits into a latched node as it is laid out.
// The probe's key, aligned with the node, is the entry's.
func (n node) canPut(p *probe, e *item) bool {
	m := n.meta()
	if p.side != 0 || p.rest < 0 || m.count() == m.room() {
		return false
	}
	if !m.isSlotted() {
		return p.rest == m.length() && !e.hasRow(m.level()) && e.long == 0
	}
	return m.heap()-e.words(m.level(), p.rest) >= int(m.end()/8)
}

// put adds an entry at place i of a latched node if it can.
func (n node) put(p *probe, i int, e *item) bool {
	if !n.canPut(p, e) {
		return false
	}
	m := n.meta()
	n.open(m, i, p.head, e.val)
	if m.isSlotted() {
		if i < m.count() { // or the place behind the last slot may be behind the node
			slots := n.at(m.slots())
			moveHalves(add4(slots, i+1), add4(slots, i), m.count()-i)
		}
		m = n.writeRest(m, i, p.key, e)
	}
	n.setMeta(m.addCount(1))
	return true
}

// open makes room in the arrays.
func (n node) open(m meta, i int, head, val uint64) {
	heads, vals := n.at(m.heads()), n.at(m.vals())
	moveWords(add8(heads, i+1), add8(heads, i), m.count()-i)
	moveWords(add8(vals, i+1), add8(vals, i), m.count()-i)
	n.setIndex(m.heads(), i, head)
	n.setIndex(m.vals(), i, val)
}

// take removes entry i of a latched node.
func (n node) take(i int) {
	m := n.meta()
	heads, vals := n.at(m.heads()), n.at(m.vals())
	after := m.count() - i - 1
	if m.isSlotted() {
		m = m.addDead(n.slot(m, i).words())
		slots := n.at(m.slots())
		moveHalves(add4(slots, i), add4(slots, i+1), after)
	}
	moveWords(add8(heads, i), add8(heads, i+1), after)
	moveWords(add8(vals, i), add8(vals, i+1), after)
	n.setMeta(m.addCount(-1))
}
