package btree

import (
	"bytes"
	"cmp"
)

// The two meanings of a place in a node, as the bias of search.
const (
	below = 0 // the number of entries below the probe
	upTo  = 1 // the number of entries not above it
)

// search returns the number of entries of g that compare below bias with the
// probe. The result is within the node but counts only if g is valid
// afterwards.
func (t *Tree) search(g *guard, m meta, p *probe, bias int) (int, error) {
	p.align(g.node, m.prefix())
	count := m.count()
	if p.side != 0 {
		if p.side < 0 {
			return 0, nil
		}
		return count, nil
	}
	heads := m.heads()
	i := lowerHead(g.node, heads, 0, count, p.head)
	if i == count || g.index(heads, i) != p.head {
		return i, nil
	}
	return t.searchRun(g, m, p, i, bias)
}

// lowerHead returns the first place in [lo, hi) whose head is not below head.
func lowerHead(n node, heads uintptr, lo, hi int, head uint64) int {
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.index(heads, mid) < head {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// searchRun finishes a search among the entries with the probe's head, which
// begin at lo.
func (t *Tree) searchRun(g *guard, m meta, p *probe, lo, bias int) (int, error) {
	if !m.isSlotted() && (m.level() > 0 || p.row == 0 && bias == below) {
		return searchEqual(g.node, m, p, lo, bias), nil
	}
	hi := runEnd(g.node, m, lo, p.head)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		c, err := t.compare(g, m, mid, p)
		if err != nil {
			return 0, err
		}
		if c < bias {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// searchEqual is searchRun where the entries of the run have one key and their
// rows do not matter: those of an inner node have none, and in a leaf no row is
// below 0.
func searchEqual(n node, m meta, p *probe, lo, bias int) int {
	c := cmp.Compare(m.length(), p.rest)
	if c == 0 && m.level() > 0 {
		c = cmp.Compare(0, p.row)
	}
	if c < bias {
		return runEnd(n, m, lo, p.head)
	}
	return lo
}

// runEnd returns the place behind the entries with this head, one of which is
// at lo.
func runEnd(n node, m meta, lo int, head uint64) int {
	heads := m.heads()
	hi := lo + 1
	if hi == m.count() || n.index(heads, hi) != head {
		return hi
	}
	if head == ^uint64(0) {
		return m.count()
	}
	return lowerHead(n, heads, hi, m.count(), head+1)
}

// compare orders entry i of g, whose head is the probe's, against the probe.
func (t *Tree) compare(g *guard, m meta, i int, p *probe) (int, error) {
	if !m.isSlotted() {
		if c := cmp.Compare(m.length(), p.rest); c != 0 {
			return c, nil
		}
		if m.level() > 0 {
			return cmp.Compare(0, p.row), nil
		}
		return cmp.Compare(g.index(m.vals(), i), p.row), nil
	}
	s := g.slot(m, i)
	c, err := t.compareRest(g, m, s, p)
	if c != 0 || err != nil {
		return c, err
	}
	return cmp.Compare(g.entryRow(m, i, s), p.row), nil
}

// sameKey reports whether entry i of g has the probe's key. The probe is
// aligned with g.
func (t *Tree) sameKey(g *guard, m meta, i int, p *probe) (bool, error) {
	if p.side != 0 || g.index(m.heads(), i) != p.head {
		return false, nil
	}
	if !m.isSlotted() {
		return m.length() == p.rest, nil
	}
	s := g.slot(m, i)
	if s.length() != p.rest {
		return false, nil
	}
	c, err := t.compareRest(g, m, s, p)
	return c == 0, err
}

// compareRest orders the key of a slot, equal up to the head, against the
// probe's.
func (t *Tree) compareRest(g *guard, m meta, s slot, p *probe) (int, error) {
	if s.isLong() {
		return t.compareLong(g, s, p)
	}
	words := restWords(min(s.length(), max(p.rest, 0)))
	at := m.prefix() + 8
	for w := range words {
		have := g.heapWord(s.at() + w)
		want := headAt(p.key, at+8*w)
		if have != want {
			return cmp.Compare(have, want), nil
		}
	}
	return cmp.Compare(s.length(), p.rest), nil
}

// compareLong reads a key kept out of line. The pages cannot go away while the
// caller is pinned, but the word that leads to them must be a true one.
func (t *Tree) compareLong(g *guard, s slot, p *probe) (int, error) {
	var buf [MaxKey]byte
	key, err := t.appendLong(buf[:0], g, s)
	if err != nil {
		return 0, err
	}
	return bytes.Compare(key, p.key), nil
}

// entryRow returns the row of entry i: in an inner node the separator's, 0 if
// it has none.
func (n node) entryRow(m meta, i int, s slot) uint64 {
	switch {
	case m.level() == 0:
		return n.index(m.vals(), i)
	case s.hasRow():
		return n.heapWord(s.at() + s.keyWords())
	default:
		return 0
	}
}
