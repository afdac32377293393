package btree

import "unsafe"

// NodeSize is the size of every node in bytes.
const NodeSize = 2048

// Offsets of the header fields; the package documentation has the table.
const (
	versionAt  = 0
	metaAt     = 8
	linkAt     = 16
	idAt       = 24
	epochAt    = 32
	headerSize = 40
)

// ownerShift is the place of the owner in the word with the id.
const ownerShift = 32

const (
	nodeWords = NodeSize / 8

	// MaxKey is the longest key in bytes.
	MaxKey = 4096
	// inlineKey is the longest key that is kept inside its node, so that any
	// node takes at least four entries and a split always finds a place.
	inlineKey = 384
	maxPrefix = 248

	overflowLevel = 1<<levelBits - 1
	overflowBytes = NodeSize - headerSize
)

// node is the memory of one node. Its methods take offsets that the caller has
// checked; meta.sane is the check for those derived from the meta word.
type node struct{ p unsafe.Pointer }

func (n node) at(off uintptr) unsafe.Pointer    { return unsafe.Add(n.p, off) }
func (n node) word(off uintptr) uint64          { return loadWord(unsafe.Add(n.p, off)) }
func (n node) setWord(off uintptr, w uint64)    { storeWord(unsafe.Add(n.p, off), w) }
func (n node) index(base uintptr, i int) uint64 { return loadWord(unsafe.Add(n.p, base+8*uintptr(i))) }
func (n node) setIndex(base uintptr, i int, w uint64) {
	storeWord(unsafe.Add(n.p, base+8*uintptr(i)), w)
}

func (n node) meta() meta       { return meta(n.word(metaAt)) }
func (n node) setMeta(m meta)   { n.setWord(metaAt, uint64(m)) }
func (n node) link() uint64     { return n.word(linkAt) }
func (n node) setLink(w uint64) { n.setWord(linkAt, w) }
func (n node) id() NodeID       { return NodeID(n.word(idAt)) }
func (n node) name() uint64     { return n.word(idAt) }
func (n node) epoch() uint64    { return n.word(epochAt) }

// child returns the child word i: 0 is left of the first separator.
func (n node) child(m meta, i int) uint64 {
	if i == 0 {
		return n.link()
	}
	return n.index(m.vals(), i-1)
}

func (n node) setChild(m meta, i int, w uint64) {
	if i == 0 {
		n.setLink(w)
	} else {
		n.setIndex(m.vals(), i-1, w)
	}
}

func (n node) slot(m meta, i int) slot {
	return slot(loadHalf(unsafe.Add(n.p, m.slots()+4*uintptr(i))))
}

func (n node) setSlot(m meta, i int, s slot) {
	storeHalf(unsafe.Add(n.p, m.slots()+4*uintptr(i)), uint32(s))
}

// heapWord returns word w of the node if it lies in the node.
func (n node) heapWord(w int) uint64 {
	return n.word(uintptr(w&(nodeWords-1)) * 8)
}

// meta is the one word that describes a node's layout. A reader loads it once,
// so that what it derives from it fits together.
//
//	bits  0-7   count   entries
//	      8-15  room    entries that heads, values and slots have space for
//	     16-23  prefix  bytes that all keys share
//	     24-32  heap    first used word of the heap; 256 = empty
//	     33-36  length  of every key behind the prefix, 0-8; 15 = slots tell it
//	     37-42  level   0 = leaf; 63 = overflow page
//	     43-51  dead    heap words of removed entries
//	     52-63  bytes   overflow page: key bytes in this page
type meta uint64

const (
	roomShift   = 8
	prefixShift = 16
	heapShift   = 24
	lengthShift = 33
	levelShift  = 37
	deadShift   = 43
	bytesShift  = 52

	levelBits = 6
	slotted   = 15 // length of a node with slots
)

func makeMeta(level, count, room, prefix, heap, length int) meta {
	return meta(count) | meta(room)<<roomShift | meta(prefix)<<prefixShift |
		meta(heap)<<heapShift | meta(length)<<lengthShift | meta(level)<<levelShift
}

func (m meta) count() int      { return int(m & 255) }
func (m meta) room() int       { return int(m >> roomShift & 255) }
func (m meta) prefix() int     { return int(m >> prefixShift & 255) }
func (m meta) heap() int       { return int(m >> heapShift & 511) }
func (m meta) length() int     { return int(m >> lengthShift & 15) }
func (m meta) level() int      { return int(m >> levelShift & (1<<levelBits - 1)) }
func (m meta) dead() int       { return int(m >> deadShift & 511) }
func (m meta) bytes() int      { return int(m >> bytesShift) }
func (m meta) isSlotted() bool { return m.length() == slotted }

// heads, vals and slots are the offsets of the three arrays.
func (m meta) heads() uintptr { return headerSize + (uintptr(m>>prefixShift)&255+7)&^7 }
func (m meta) vals() uintptr  { return m.heads() + uintptr(m>>roomShift&255)*8 }
func (m meta) slots() uintptr { return m.heads() + uintptr(m>>roomShift&255)*16 }

// end is the offset behind the arrays, where the heap may begin.
func (m meta) end() uintptr {
	if m.isSlotted() {
		return (m.slots() + uintptr(m.room())*4 + 7) &^ 7
	}
	return m.slots()
}

// sane reports whether nothing that the meta word describes leaves the node.
// Every optimistic reader asks before it uses an offset.
func (m meta) sane() bool {
	return m&255 <= m>>roomShift&255 && m.end() <= NodeSize
}

// used returns the bytes that live entries take, header and prefix included.
func (m meta) used() int {
	used := int(m.heads()) + 16*m.count()
	if m.isSlotted() {
		used += 4*m.count() + 8*(nodeWords-m.heap()-m.dead())
	}
	return used
}

func (m meta) addCount(d int) meta { return m + meta(d) }
func (m meta) withHeap(h int) meta { return m&^(511<<heapShift) | meta(h)<<heapShift }
func (m meta) addDead(d int) meta  { return m + meta(d)<<deadShift }

// slot locates the rest of one key, what is neither prefix nor head.
//
//	bits  0-7   first heap word
//	      8-20  length of the key behind the prefix
//	     30     row: the word after the rest is the separator's row
//	     31     long: the heap word is the child word of an overflow chain
type slot uint32

const (
	slotLength = 8
	slotRow    = 1 << 30
	slotLong   = 1 << 31
)

// makeSlot's place does not matter for an entry without heap words, for which it
// may be the end of the node.
func makeSlot(at, length int) slot { return slot(at&(nodeWords-1)) | slot(length)<<slotLength }

func (s slot) at() int      { return int(s & 255) }
func (s slot) length() int  { return int(s >> slotLength & 8191) }
func (s slot) isLong() bool { return s&slotLong != 0 }
func (s slot) hasRow() bool { return s&slotRow != 0 }

// words returns how many heap words the entry has.
func (s slot) words() int {
	return s.keyWords() + int(s>>30&1)
}

// keyWords returns how many of them belong to the key.
func (s slot) keyWords() int {
	if s.isLong() {
		return 1
	}
	return restWords(s.length())
}

// restWords is the number of heap words for a key of length bytes behind the
// prefix.
func restWords(length int) int {
	if length <= 8 {
		return 0
	}
	return (length - 1) / 8
}
