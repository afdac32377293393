package indirection

import (
	"encoding/binary"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// The format of array files; docs/format/array.md describes every byte.
const (
	formatVersion = 1

	// MaxGenerations is the most files that an image refers to, its own
	// included.
	MaxGenerations = 8

	// maxPatchSlots is the most slots that a patch holds. A page with more
	// differing slots is written whole.
	maxPatchSlots = PageSlots / 8

	// placeCount is the number of places in the generation table. A generation
	// keeps its place while it is referred to, so entries can be carried on as
	// they are.
	placeCount = 16

	headerBytes  = pageBytes // the header's fields and zeros
	headerFields = 48
	placeBytes   = 48
	footerFields = 56
	footerBytes  = footerFields + placeCount*placeBytes + 8

	// maxFileBytes bounds the sizes that are computed with.
	maxFileBytes = 1 << 56
)

const (
	headerMagic = "\x89RIA\r\n\x1a\n"
	footerMagic = "RIAend\r\n"
)

// Every generation but the newest has at least one page, so the generations of
// an image that is being built find a place.
const _ = uint(placeCount - MaxGenerations - 1)

// header is the identity of an array file, at offset 0.
type header struct {
	table      rowid.Table
	id         [16]byte
	generation uint64
}

func (h header) encode() []byte {
	b := make([]byte, headerBytes)
	copy(b, headerMagic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint16(b[12:], uint16(h.table))
	copy(b[16:32], h.id[:])
	binary.LittleEndian.PutUint64(b[32:], h.generation)
	sum := newHasher(h.id, h.table).header(h.generation, b[:headerFields-8])
	binary.LittleEndian.PutUint64(b[headerFields-8:], sum)
	return b
}

// decodeHeader reads the first headerFields bytes of a file.
func decodeHeader(path string, b []byte) (header, error) {
	var h header
	if string(b[:8]) != headerMagic {
		return h, formatError(path, "not an array file")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return h, formatError(path, "unknown format version")
	}
	h.table = rowid.Table(binary.LittleEndian.Uint16(b[12:]))
	copy(h.id[:], b[16:32])
	h.generation = binary.LittleEndian.Uint64(b[32:])
	sum := newHasher(h.id, h.table).header(h.generation, b[:headerFields-8])
	if sum != binary.LittleEndian.Uint64(b[headerFields-8:]) {
		return h, fault.Corrupt(path, 0, headerFields, "array header: checksum")
	}
	return h, nil
}

func formatError(path, reason string) error {
	return &fault.File{Kind: fault.ErrFormat, Path: path, Length: headerFields, Reason: reason}
}

// filePlace is one place of the generation table; size 0 means unused.
type filePlace struct {
	generation uint64
	size       uint64 // of the file
	sum        uint64 // xxHash64 of the whole file; 0 for the image's own
	patches    uint64 // file offset where pages end and patches begin
	pageRefs   uint64 // pages of the image whose base is in the file
	patchRefs  uint64 // pages of the image whose patch is in the file
}

func (s filePlace) used() bool { return s.size != 0 }

func (s filePlace) refs() uint64 { return s.pageRefs + s.patchRefs }

// footer is the layout of an image, at the end of its newest file.
type footer struct {
	fileSize  uint64
	highWater uint64
	firstPIA  uint64
	pias      uint64 // number of directory chunks
	directory uint64 // file offset of the first chunk
	own       uint64 // place of the newest generation
	places    [placeCount]filePlace
}

// words lists the footer's fields in file order, after the magic.
func (f *footer) words() []*uint64 {
	words := []*uint64{&f.fileSize, &f.highWater, &f.firstPIA, &f.pias, &f.directory, &f.own}
	for i := range f.places {
		s := &f.places[i]
		words = append(words, &s.generation, &s.size, &s.sum, &s.patches, &s.pageRefs, &s.patchRefs)
	}
	return words
}

func (f *footer) encode(h hasher, generation uint64) []byte {
	b := append(make([]byte, 0, footerBytes), footerMagic...)
	for _, w := range f.words() {
		b = binary.LittleEndian.AppendUint64(b, *w)
	}
	return binary.LittleEndian.AppendUint64(b, h.footer(generation, b))
}

// decodeFooter reads the last footerBytes of a file of the given size.
func decodeFooter(path string, b []byte, size int64, h hasher, generation uint64) (footer, error) {
	var f footer
	damaged := func(reason string) (footer, error) {
		return footer{}, fault.Corrupt(path, size-footerBytes, footerBytes, "array footer: %s", reason)
	}
	if string(b[:8]) != footerMagic {
		return damaged("no magic")
	}
	if h.footer(generation, b[:footerBytes-8]) != binary.LittleEndian.Uint64(b[footerBytes-8:]) {
		return damaged("checksum")
	}
	for i, w := range f.words() {
		*w = binary.LittleEndian.Uint64(b[8+i*8:])
	}
	if reason := f.check(uint64(size), generation); reason != "" {
		return damaged(reason)
	}
	return f, nil
}

// check returns what is wrong with the layout, so that no later arithmetic on
// it can leave the files. Nothing is allocated from its numbers before.
func (f *footer) check(size, generation uint64) string {
	switch {
	case f.fileSize != size:
		return "written for another file size"
	case f.highWater > ordinalEnd:
		return "high-water mark beyond the last ordinal"
	case f.firstPIA > piaEnd || f.pias > piaEnd-f.firstPIA || f.pias > maxSpan:
		return "partial arrays beyond the last ordinal"
	case size-footerBytes < headerBytes || f.directory != size-footerBytes-f.pias*chunkBytes || f.directory > size:
		return "directory does not fit the file"
	case f.own >= placeCount || f.places[f.own].generation != generation || f.places[f.own].size != size:
		return "own generation is missing"
	case f.places[f.own].patches > f.directory:
		return "patches overlap the directory"
	}
	return f.checkPlaces()
}

func (f *footer) checkPlaces() string {
	used := 0
	for i, s := range f.places {
		switch {
		case !s.used():
			if s != (filePlace{}) {
				return "unused place is not empty"
			}
			continue
		case s.size > maxFileBytes || s.patches < headerBytes || s.patches%pageBytes != 0 || s.patches > s.size:
			return "generation with impossible sizes"
		case s.pageRefs > pageEnd || s.patchRefs > pageEnd:
			return "generation with impossible counts"
		case uint64(i) != f.own && s.generation >= f.places[f.own].generation:
			return "generation newer than the file"
		}
		used++
	}
	if used > MaxGenerations {
		return "too many generations"
	}
	return ""
}
