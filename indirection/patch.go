package indirection

import (
	"encoding/binary"
	"sort"
)

// A patch is checksum u32 | slots u16 | 0 u16 | words | slot numbers u16 each,
// ascending | zeros up to a multiple of 8.
const patchHeader = 8

func patchSize(slots int) int { return patchHeader + slots*wordBytes + (2*slots+7)&^7 }

// appendPatch appends the patch that turns base into content, which differ in n
// slots.
func appendPatch(dst []byte, h hasher, generation, page uint64, n int, base, content *[pageBytes]byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, patchSize(n))...)
	b := dst[start:]
	words, numbers := b[patchHeader:], b[patchHeader+n*wordBytes:]
	i := 0
	for slot := range PageSlots {
		if w := word(content[:], slot); w != word(base[:], slot) {
			putWord(words, i, w)
			binary.LittleEndian.PutUint16(numbers[2*i:], uint16(slot))
			i++
		}
	}
	binary.LittleEndian.PutUint16(b[4:], uint16(n))
	binary.LittleEndian.PutUint32(b, h.patch(generation, page, b[4:]))
	return dst
}

// applyPatch changes the slots of content that the patch names. It returns
// what is wrong with the patch, and then content is undefined.
func applyPatch(b []byte, h hasher, generation, page uint64, slots int, content []byte) string {
	if binary.LittleEndian.Uint32(b) != h.patch(generation, page, b[4:]) {
		return "checksum"
	}
	if int(binary.LittleEndian.Uint16(b[4:])) != slots {
		return "another number of slots than its entry says"
	}
	words, numbers := b[patchHeader:], b[patchHeader+slots*wordBytes:]
	last := -1
	for i := range slots {
		slot := int(binary.LittleEndian.Uint16(numbers[2*i:]))
		if slot <= last || slot >= PageSlots {
			return "slots out of order"
		}
		copy(content[slot*wordBytes:][:wordBytes], words[i*wordBytes:])
		last = slot
	}
	return ""
}

// findPatched returns the word that a patch, checked before, has for a slot.
func findPatched(b []byte, slots int, slot uint64) (Word, bool) {
	words, numbers := b[patchHeader:], b[patchHeader+slots*wordBytes:]
	number := func(i int) uint64 { return uint64(binary.LittleEndian.Uint16(numbers[2*i:])) }
	i := sort.Search(slots, func(i int) bool { return number(i) >= slot })
	if i == slots || number(i) != slot {
		return 0, false
	}
	return word(words, i), true
}

// word reads a slot of a page in file order.
func word(page []byte, slot int) Word {
	return Word(binary.LittleEndian.Uint64(page[slot*wordBytes:]))
}

// storedWords reports whether all words of a page in file order can stand in a file.
func storedWords(page []byte) bool {
	for slot := range PageSlots {
		if !word(page, slot).stored() {
			return false
		}
	}
	return true
}

func putWord(page []byte, slot int, w Word) {
	binary.LittleEndian.PutUint64(page[slot*wordBytes:], uint64(w))
}

// differing counts the slots in which two pages differ.
func differing(a, b *[pageBytes]byte) int {
	n := 0
	for slot := range PageSlots {
		if word(a[:], slot) != word(b[:], slot) {
			n++
		}
	}
	return n
}

var emptyPage [pageBytes]byte

// liveSlots counts the slots that are not empty.
func liveSlots(page *[pageBytes]byte) int { return differing(page, &emptyPage) }
