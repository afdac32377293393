package indirection

import (
	"encoding/binary"
)

const (
	pageEntryBytes = 16
	chunkBytes     = 8 + piaPages*pageEntryBytes // checksum and entries
)

// pageEntry says where an image has a page. The zero value is a page without
// any row. A page is its base, with the slots of its patch replaced; without a
// base the patch replaces slots of an empty page.
type pageEntry struct {
	base       uint32 // file offset of the base / pageBytes; 0 = none
	patch      uint32 // 1 + offset of the patch in its file's patches / 8; 0 = none
	sum        uint32 // checksum of the page as read
	live       int    // slots that are not empty
	patched    int    // slots of the patch
	basePlace  int    // place of the base's generation
	patchPlace int    // place of the patch's generation
}

// Bits of the fourth word of an entry.
const (
	liveBits     = 10
	patchedShift = liveBits
	patchedBits  = 7
	baseShift    = patchedShift + patchedBits
	placeBits    = 4
	patchShift   = baseShift + placeBits
)

const _ = uint(1<<liveBits - 1 - PageSlots)
const _ = uint(1<<patchedBits - 1 - maxPatchSlots)
const _ = uint(1<<placeBits - placeCount)

func (e pageEntry) put(b []byte) {
	binary.LittleEndian.PutUint32(b[0:], e.base)
	binary.LittleEndian.PutUint32(b[4:], e.patch)
	binary.LittleEndian.PutUint32(b[8:], e.sum)
	binary.LittleEndian.PutUint32(b[12:],
		uint32(e.live)|uint32(e.patched)<<patchedShift|uint32(e.basePlace)<<baseShift|uint32(e.patchPlace)<<patchShift)
}

func decodeEntry(b []byte) pageEntry {
	w := binary.LittleEndian.Uint32(b[12:])
	return pageEntry{
		base:       binary.LittleEndian.Uint32(b[0:]),
		patch:      binary.LittleEndian.Uint32(b[4:]),
		sum:        binary.LittleEndian.Uint32(b[8:]),
		live:       int(w & (1<<liveBits - 1)),
		patched:    int(w >> patchedShift & (1<<patchedBits - 1)),
		basePlace:  int(w >> baseShift & (1<<placeBits - 1)),
		patchPlace: int(w >> patchShift), // a value beyond placeCount is refused by check
	}
}

func (e pageEntry) empty() bool { return e == pageEntry{} }

func (e pageEntry) hasBase() bool  { return e.base != 0 }
func (e pageEntry) hasPatch() bool { return e.patch != 0 }

// inPlace reports whether the page stands in its file as it is read.
func (e pageEntry) inPlace() bool { return e.hasBase() && !e.hasPatch() }

func (e pageEntry) baseOffset() uint64 { return uint64(e.base) * pageBytes }

// refersTo reports whether the page needs a file of the set.
func (e pageEntry) refersTo(set uint16) bool {
	return e.hasBase() && set>>e.basePlace&1 != 0 || e.hasPatch() && (e.patchPlace >= placeCount || set>>e.patchPlace&1 != 0)
}

// check returns what is wrong with an entry, so that what it points to lies in
// the files.
func (e pageEntry) check(places *[placeCount]filePlace) string {
	switch {
	case e.empty():
		return ""
	case e.live == 0 || e.live > PageSlots:
		return "impossible number of rows"
	case !e.hasBase() && !e.hasPatch():
		return "rows without a place"
	case !e.hasBase() && e.basePlace != 0 || !e.hasPatch() && (e.patchPlace != 0 || e.patched != 0):
		return "place without content"
	case e.hasBase() && e.baseOffset()+pageBytes > places[e.basePlace].patches:
		return "page outside its file"
	case e.hasPatch() && (e.patched == 0 || e.patched > maxPatchSlots || e.patchPlace >= placeCount):
		return "impossible patch"
	case e.hasPatch() && e.patchEnd(&places[e.patchPlace]) > places[e.patchPlace].size:
		return "patch outside its file"
	}
	return ""
}

func (e pageEntry) patchOffset(s *filePlace) uint64 { return s.patches + uint64(e.patch-1)*wordBytes }

func (e pageEntry) patchEnd(s *filePlace) uint64 {
	return e.patchOffset(s) + uint64(patchSize(e.patched))
}
