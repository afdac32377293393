package btree

import (
	"encoding/binary"
	"math/bits"
)

// probe is the place that a search looks for: (key, row), and how it compares
// with the node that was searched last.
type probe struct {
	key   []byte
	row   uint64
	first uint64 // head of the key

	head uint64 // first 8 bytes of the key behind the node's prefix
	rest int    // its length behind the prefix
	side int    // 0 inside the node's prefix, −1 below, 1 above all its keys
}

func newProbe(key []byte, row uint64) probe {
	return probe{key: key, row: row, first: headAt(key, 0)}
}

// headAt returns the 8 bytes of key from at on as a big-endian number, zeros
// standing for what the key lacks. Numbers made so order like the bytes, but
// for keys that differ only in zero bytes at the end.
func headAt(key []byte, at int) uint64 {
	if len(key)-at >= 8 {
		return binary.BigEndian.Uint64(key[at:])
	}
	return shortHead(key, at)
}

func shortHead(key []byte, at int) uint64 {
	rest := len(key) - at
	if rest <= 0 {
		return 0
	}
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key[len(key)-8:]) << (64 - 8*rest)
	}
	var padded [8]byte
	copy(padded[:], key[at:])
	return binary.BigEndian.Uint64(padded[:])
}

// align compares the probe with the prefix of a node and takes the head of
// what follows.
func (p *probe) align(n node, prefix int) {
	p.rest, p.side, p.head = len(p.key)-prefix, 0, p.first
	if prefix > 0 {
		p.alignBehind(n, prefix)
	}
}

func (p *probe) alignBehind(n node, prefix int) {
	have, want := p.first&topBytes(prefix), n.word(headerSize)
	for at := 8; have == want && at < prefix; at += 8 {
		have, want = headAt(p.key, at)&topBytes(prefix-at), n.word(headerSize+uintptr(at))
	}
	switch {
	case have < want || have == want && p.rest < 0:
		p.side = -1
	case have > want:
		p.side = 1
	}
	p.head = headAt(p.key, prefix)
}

// topBytes is a mask of the first n bytes of a head, all if n exceeds 8.
func topBytes(n int) uint64 {
	if n >= 8 {
		return ^uint64(0)
	}
	return ^uint64(0) << (64 - 8*n)
}

// commonPrefix returns how many leading bytes a and b share.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if d := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); d != 0 {
			return i + bits.TrailingZeros64(d)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
