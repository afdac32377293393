package btree

import (
	"encoding/binary"
	"unsafe"
)

// AppendImage appends the node in a block in the form in which a store may keep
// it in a file: its bytes, with zeros for version, owner, hints and what no
// entry has used, where memory has anything. The content must be one that no longer changes:
// that of an epoch that has ended.
func AppendImage(dst []byte, block unsafe.Pointer) []byte {
	n := node{block}
	start := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	for at := uintptr(metaAt); at < NodeSize; at += 8 {
		dst = binary.LittleEndian.AppendUint64(dst, n.word(at))
	}
	clear(dst[start+idAt+ownerShift/8 : start+idAt+8])
	n.eachChildWord(func(at uintptr) { clear(dst[start+int(at)+hintShift/8:][:8-hintShift/8]) })
	n.eachSpace(func(from, to uintptr) { clear(dst[start+int(from) : start+int(to)]) })
	return dst
}

// eachSpace calls fn with the extents that are free for entries to come.
func (n node) eachSpace(fn func(from, to uintptr)) {
	m := n.meta()
	if m.level() == overflowLevel {
		fn(headerSize+uintptr(m.bytes()+7)&^7, NodeSize)
		return
	}
	count := uintptr(m.count())
	fn(m.heads()+8*count, m.vals())
	if !m.isSlotted() {
		fn(m.vals()+8*count, NodeSize)
		return
	}
	fn(m.vals()+8*count, m.slots())
	fn(m.slots()+4*count, 8*uintptr(m.heap()))
}

// eachChildWord calls fn with the offset of every child word.
func (n node) eachChildWord(fn func(at uintptr)) {
	m := n.meta()
	fn(linkAt)
	if m.level() == overflowLevel {
		return
	}
	for i := range m.count() {
		if m.level() > 0 {
			fn(m.vals() + 8*uintptr(i))
		}
		if m.isSlotted() && n.slot(m, i).isLong() {
			fn(8 * uintptr(n.slot(m, i).at()))
		}
	}
}

// CheckImage reports whether a node read from a file is one that the tree can
// work with: its id, a layout that stays within its bounds, and no hints. It
// does not look at keys, for which the file's checksum vouches.
func CheckImage(image []byte, id NodeID) bool {
	if len(image) < NodeSize || uintptr(unsafe.Pointer(&image[0]))%8 != 0 {
		return false
	}
	n := node{unsafe.Pointer(&image[0])}
	m := n.meta()
	if n.id() != id || !n.soundLayout(m) {
		return false
	}
	sound := true
	n.eachChildWord(func(at uintptr) { sound = sound && n.word(at)>>hintShift == 0 })
	return sound
}

func (n node) soundLayout(m meta) bool {
	if m.level() == overflowLevel {
		return m.bytes() <= overflowBytes
	}
	if !m.sane() || m.length() > 8 && !m.isSlotted() ||
		m.heap() > nodeWords || int(m.end()) > 8*m.heap() || m.heap()+m.dead() > nodeWords {
		return false
	}
	for i := 0; m.isSlotted() && i < m.count(); i++ {
		s := n.slot(m, i)
		if m.prefix()+s.length() > MaxKey || s.words() > 0 && (s.at() < m.heap() || s.at()+s.words() > nodeWords) {
			return false
		}
	}
	return true
}
