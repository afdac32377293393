package btree

import (
	"encoding/binary"
)

// appendKey appends the key of entry i. What it appends from a node that is
// not latched counts only if g is valid afterwards.
func (t *Tree) appendKey(dst []byte, g *guard, m meta, i int) ([]byte, error) {
	if !m.isSlotted() {
		dst = appendPrefix(dst, g.node, m.prefix())
		return appendHead(dst, g.index(m.heads(), i), min(m.length(), 8)), nil
	}
	s := g.slot(m, i)
	if s.isLong() {
		return t.appendLong(dst, g, s)
	}
	dst = appendPrefix(dst, g.node, m.prefix())
	dst = appendHead(dst, g.index(m.heads(), i), min(s.length(), 8))
	return appendRest(dst, g.node, s), nil
}

func appendPrefix(dst []byte, n node, prefix int) []byte {
	for at := 0; at < prefix; at += 8 {
		dst = appendHead(dst, n.word(headerSize+uintptr(at)), min(prefix-at, 8))
	}
	return dst
}

// appendHead appends the first n ≤ 8 bytes of a big-endian word.
func appendHead(dst []byte, head uint64, n int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, head)
	return dst[:len(dst)-8+n]
}

// appendRest appends the bytes behind the head.
func appendRest(dst []byte, n node, s slot) []byte {
	rest := s.length() - 8
	for w := 0; rest > 0; w++ {
		dst = appendHead(dst, n.heapWord(s.at()+w), min(rest, 8))
		rest -= 8
	}
	return dst
}

// appendLong appends a key kept in overflow pages. They are immutable and stay
// as long as the node is valid; then their ids may be given to other nodes.
func (t *Tree) appendLong(dst []byte, g *guard, s slot) ([]byte, error) {
	w := g.heapWord(s.at())
	if !g.valid() {
		return dst, errRestart
	}
	for left := MaxKey; w != 0; {
		page, err := t.enterPage(w, g.isLatched())
		if err != nil {
			return dst, err
		}
		m := page.meta()
		n := m.bytes()
		if m.level() != overflowLevel || n > min(left, overflowBytes) {
			return dst, t.damagedPage(g, &page)
		}
		dst = appendPage(dst, page.node, n)
		left -= n
		w = page.link()
		if !page.valid() {
			return dst, errRestart
		}
	}
	return dst, nil
}

// damagedPage is damaged for an overflow page of g.
func (t *Tree) damagedPage(g, page *guard) error {
	if !g.valid() {
		return errRestart
	}
	return t.damaged(page)
}

// enterPage enters an overflow page, but not an image under a latch.
func (t *Tree) enterPage(w uint64, underLatch bool) (guard, error) {
	if underLatch && t.store != nil {
		entry, err := t.store.Entry(idOf(w))
		if err != nil {
			return guard{}, err
		}
		if entry.Load()&ImageBit != 0 {
			return guard{}, &imageError{idOf(w)}
		}
	}
	return t.enter(w)
}

func appendPage(dst []byte, n node, bytes int) []byte {
	for at := 0; at < bytes; at += 8 {
		dst = appendHead(dst, n.word(headerSize+uintptr(at)), min(bytes-at, 8))
	}
	return dst
}
