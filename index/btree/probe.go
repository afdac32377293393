package btree

import (
	"cmp"
	"encoding/binary"
	"math/bits"
)

// probe is the place that a search looks for: (key, row), and how it compares
// with the node that was searched last.
type probe struct {
	key []byte
	row uint64
	top bool // above every key; then key and row say nothing

	head uint64 // first 8 bytes of the key behind the node's prefix
	rest int    // its length behind the prefix
	side int    // 0 inside the node's prefix, −1 below, 1 above all its keys
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
	p.rest = len(p.key) - prefix
	p.side = 0
	if prefix > 0 || p.top {
		p.side = p.comparePrefix(n, prefix)
	}
	p.head = headAt(p.key, prefix)
}

func (p *probe) comparePrefix(n node, prefix int) int {
	if p.top {
		return 1
	}
	for at := 0; at < prefix; at += 8 {
		want := n.word(headerSize + uintptr(at))
		have := headAt(p.key, at) & topBytes(prefix-at)
		if have != want {
			return cmp.Compare(have, want)
		}
	}
	if p.rest < 0 {
		return -1
	}
	return 0
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
