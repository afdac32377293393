package rebuild

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

const (
	wordBytes   = 8
	inlineBytes = 2 * wordBytes // of a key, in the entry itself
	lengthShift = 48            // of the key's length in tail
	ordinalMask = 1<<lengthShift - 1
)

// entry is laid out as the package documentation describes.
type entry struct {
	head, mid uint64
	rest      *byte
	tail      uint64
}

// view makes an entry whose rest is the memory of key. It serves comparisons
// while key is unchanged; own makes it fit to stay in a tree.
func view(key []byte, ordinal uint64) entry {
	e := entry{head: word(key), tail: uint64(len(key))<<lengthShift | ordinal}
	if len(key) > wordBytes {
		e.mid = word(key[wordBytes:])
	}
	if len(key) > inlineBytes {
		e.rest = &key[inlineBytes]
	}
	return e
}

// word is the first bytes of key as a number that compares as they do.
func word(key []byte) uint64 {
	if len(key) >= wordBytes {
		return binary.BigEndian.Uint64(key)
	}
	var padded [wordBytes]byte
	copy(padded[:], key)
	return binary.BigEndian.Uint64(padded[:])
}

// own returns e with memory of its own.
func (e entry) own() entry {
	if e.rest != nil {
		e.rest = &bytes.Clone(e.restBytes())[0]
	}
	return e
}

func (e entry) length() int { return int(e.tail >> lengthShift) }

func (e entry) ordinal() uint64 { return e.tail & ordinalMask }

// restBytes is empty for a key that fits into the entry.
func (e entry) restBytes() []byte {
	if e.rest == nil {
		return nil
	}
	return unsafe.Slice(e.rest, e.length()-inlineBytes)
}

// before orders entries by (key, RowID).
func before(a, b entry) bool {
	if a.head != b.head {
		return a.head < b.head
	}
	return beforeBehindHead(a, b)
}

// beforeBehindHead is apart so that the usual comparison stays small.
func beforeBehindHead(a, b entry) bool {
	if a.mid != b.mid {
		return a.mid < b.mid
	}
	if a.rest != nil && b.rest != nil {
		if d := bytes.Compare(a.restBytes(), b.restBytes()); d != 0 {
			return d < 0
		}
	}
	return a.tail < b.tail
}

func sameKey(a, b entry) bool {
	return a.head == b.head && a.mid == b.mid && a.length() == b.length() &&
		(a.rest == nil || bytes.Equal(a.restBytes(), b.restBytes()))
}

// appendTo copies the entry out.
func (e entry) appendTo(b *index.Batch, row rowid.ID) {
	var inline [inlineBytes]byte
	binary.BigEndian.PutUint64(inline[:], e.head)
	binary.BigEndian.PutUint64(inline[wordBytes:], e.mid)
	b.AppendParts(inline[:min(e.length(), inlineBytes)], e.restBytes(), row)
}
