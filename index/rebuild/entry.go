package rebuild

import (
	"encoding/binary"
	"strings"
	"unsafe"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

const (
	headBytes  = 8
	longKey    = headBytes + 1 // the length that stands for all above headBytes
	lengthBits = 48            // shift of the length in tail
	ordinals   = 1<<lengthBits - 1
)

// entry is laid out as the package documentation describes.
type entry struct {
	head uint64
	rest string
	tail uint64
}

// view makes an entry whose rest is the memory of key. It serves comparisons
// while key is unchanged; own makes it fit to stay in a tree.
func view(key []byte, ordinal uint64) entry {
	if len(key) <= headBytes {
		return entry{head: shortHead(key), tail: uint64(len(key))<<lengthBits | ordinal}
	}
	rest := key[headBytes:]
	return entry{
		head: binary.BigEndian.Uint64(key),
		rest: unsafe.String(&rest[0], len(rest)),
		tail: longKey<<lengthBits | ordinal,
	}
}

func shortHead(key []byte) uint64 {
	if len(key) == headBytes {
		return binary.BigEndian.Uint64(key)
	}
	var padded [headBytes]byte
	copy(padded[:], key)
	return binary.BigEndian.Uint64(padded[:])
}

// own returns e with memory of its own.
func (e entry) own() entry {
	e.rest = strings.Clone(e.rest)
	return e
}

func less(a, b entry) bool {
	if a.head != b.head {
		return a.head < b.head
	}
	if a.rest != "" && b.rest != "" && a.rest != b.rest {
		return a.rest < b.rest
	}
	return a.tail < b.tail
}

func sameKey(a, b entry) bool {
	return a.head == b.head && a.tail>>lengthBits == b.tail>>lengthBits && a.rest == b.rest
}

// next is the smallest entry above e. Past the largest ordinal the carry into
// the length makes it the smallest of a longer key, which is above e just so.
func (e entry) next() entry {
	e.tail++
	return e
}

// previous is a pivot below e and not below any entry of a tree that is. The
// pivot of the empty key is below all of them and stays what it is.
func (e entry) previous() entry {
	if e.tail > 0 {
		e.tail--
	}
	return e
}

func (e entry) ordinal() uint64 { return e.tail & ordinals }

// appendTo copies the entry out.
func (e entry) appendTo(b *index.Batch, row rowid.ID) {
	var head [headBytes]byte
	binary.BigEndian.PutUint64(head[:], e.head)
	n := min(e.tail>>lengthBits, headBytes)
	b.AppendParts(head[:n], []byte(e.rest), row)
}
