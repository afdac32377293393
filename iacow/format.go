package iacow

import (
	"encoding/binary"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/fault"
)

// The format of node files; docs/format/iacow.md describes every byte.
const (
	formatVersion = 1

	// MaxGenerations is the most files that a checkpoint refers to, its own
	// included.
	MaxGenerations = 8

	// placeCount is the number of places in the generation table. A generation
	// keeps its place while it is referred to, so that table entries can be
	// carried on as they are.
	placeCount = 16

	blockBytes   = btree.NodeSize // unit of places in a file
	headerFields = 56
	placeBytes   = 48
	footerFields = 80
	footerBytes  = footerFields + placeCount*placeBytes + 8

	// maxFileBytes bounds the sizes that are computed with.
	maxFileBytes = blockBytes << 32
)

const (
	headerMagic = "\x89IACOW\r\n"
	footerMagic = "IACend\r\n"
)

// Every generation but the newest has something that is live, so the one that
// is being written finds a place.
const _ = uint(placeCount - MaxGenerations - 1)

// identity is what all files of one index have in common.
type identity struct {
	database [16]byte
	table    uint16
	index    uint16
}

func identityOf(spec *index.Spec) identity {
	return identity{database: spec.DatabaseID, table: uint16(spec.Table), index: uint16(spec.Number)}
}

// header is at offset 0 of a file.
type header struct {
	identity
	checkpoint uint64
	salt       uint64 // random, makes the file's checksums its own
}

func (h *header) encode() []byte {
	b := make([]byte, 0, blockBytes)
	b = append(b, headerMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint16(b, h.table)
	b = binary.LittleEndian.AppendUint16(b, h.index)
	b = append(b, h.database[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.checkpoint)
	b = binary.LittleEndian.AppendUint64(b, h.salt)
	b = binary.LittleEndian.AppendUint64(b, newHasher(h.identity).header(b))
	return b[:blockBytes]
}

// decodeHeader reads the first headerFields bytes of a file.
func decodeHeader(path string, b []byte) (h header, err error) {
	if string(b[:8]) != headerMagic {
		return h, formatError(path, "not a node file")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return h, formatError(path, "unknown format version")
	}
	h.table = binary.LittleEndian.Uint16(b[12:])
	h.index = binary.LittleEndian.Uint16(b[14:])
	copy(h.database[:], b[16:32])
	h.checkpoint = binary.LittleEndian.Uint64(b[32:])
	h.salt = binary.LittleEndian.Uint64(b[40:])
	if newHasher(h.identity).header(b[:headerFields-8]) != binary.LittleEndian.Uint64(b[headerFields-8:]) {
		return h, fault.Corrupt(path, 0, headerFields, "node file header: checksum")
	}
	return h, nil
}

func formatError(path, reason string) error {
	return &fault.File{Kind: fault.ErrFormat, Path: path, Length: headerFields, Reason: reason}
}

// generation is one place of the generation table; size 0 means unused.
type generation struct {
	checkpoint uint64
	size       uint64 // of the file in bytes
	sum        uint64 // xxHash64 of the whole file; 0 for the newest file's own
	salt       uint64
	nodes      uint64 // blocks 1 … nodes of the file are nodes
	live       live
}

// live counts what a checkpoint uses of a file.
type live struct {
	nodes uint32
	pages uint32 // of the node table
}

func (l live) blocks() uint64 { return uint64(l.nodes) + blocksPerPage*uint64(l.pages) }

func (l live) word() uint64 { return uint64(l.nodes) | uint64(l.pages)<<32 }

func (g *generation) used() bool { return g.size != 0 }

// footer is the root of a checkpoint, at the end of its newest file.
type footer struct {
	fileSize  uint64
	epoch     uint64 // newest stamp that a node may have
	root      uint64 // node id
	next      uint64 // lowest id never handed out
	entries   uint64
	nodes     uint64
	pages     uint64 // pages of the node table
	directory uint64 // file offset of the first directory chunk
	own       uint64 // place of the newest file
	places    [placeCount]generation
}

// words lists the footer's plain fields in file order, after the magic.
func (f *footer) words() []*uint64 {
	return []*uint64{&f.fileSize, &f.epoch, &f.root, &f.next, &f.entries, &f.nodes, &f.pages, &f.directory, &f.own}
}

func (g *generation) words() []*uint64 {
	return []*uint64{&g.checkpoint, &g.size, &g.sum, &g.salt, &g.nodes}
}

func (f *footer) encode(h hasher) []byte {
	b := append(make([]byte, 0, footerBytes), footerMagic...)
	for _, w := range f.words() {
		b = binary.LittleEndian.AppendUint64(b, *w)
	}
	for i := range f.places {
		g := &f.places[i]
		for _, w := range g.words() {
			b = binary.LittleEndian.AppendUint64(b, *w)
		}
		b = binary.LittleEndian.AppendUint64(b, g.live.word())
	}
	own := &f.places[f.own]
	return binary.LittleEndian.AppendUint64(b, h.footer(own.checkpoint, own.salt, b))
}

// decodeFooter reads the last footerBytes of the file with the given header.
func decodeFooter(path string, b []byte, size int64, h *header) (*footer, error) {
	damaged := func(reason string) (*footer, error) {
		return nil, fault.Corrupt(path, size-footerBytes, footerBytes, "node file footer: %s", reason)
	}
	if string(b[:8]) != footerMagic {
		return damaged("no magic")
	}
	sum := newHasher(h.identity).footer(h.checkpoint, h.salt, b[:footerBytes-8])
	if sum != binary.LittleEndian.Uint64(b[footerBytes-8:]) {
		return damaged("checksum")
	}
	f := new(footer)
	f.decode(b[8:])
	if reason := f.check(uint64(size), h); reason != "" {
		return damaged(reason)
	}
	return f, nil
}

func (f *footer) decode(b []byte) {
	take := func(w *uint64) {
		*w = binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	for _, w := range f.words() {
		take(w)
	}
	for i := range f.places {
		g := &f.places[i]
		for _, w := range g.words() {
			take(w)
		}
		var l uint64
		take(&l)
		g.live = live{nodes: uint32(l), pages: uint32(l >> 32)}
	}
}

// check returns what is wrong with the layout, so that no later arithmetic on
// it can leave the files. Nothing is allocated from its numbers before.
func (f *footer) check(size uint64, h *header) string {
	switch {
	case f.fileSize != size || size > maxFileBytes:
		return "written for another file size"
	case f.next < 1 || f.next > maxNodeID+1:
		return "impossible number of node ids"
	case f.root < 1 || f.root >= f.next || f.nodes >= f.next:
		return "root or number of nodes beyond the node ids"
	case f.pages != pagesFor(f.next):
		return "node table of another size"
	case f.entries > f.nodes*maxEntries:
		return "impossible number of entries"
	case f.own >= placeCount:
		return "own generation is missing"
	case f.directory%blockBytes != 0 || f.directory > size || size-f.directory != chunksFor(f.pages)*chunkBytes+footerBytes:
		return "directory does not fit the file"
	}
	own := &f.places[f.own]
	if own.checkpoint != h.checkpoint || own.salt != h.salt || own.size != size || own.nodes >= f.directory/blockBytes {
		return "own generation is another one"
	}
	return f.checkPlaces()
}

func (f *footer) checkPlaces() string {
	used, nodes, pages := 0, uint64(0), uint64(0)
	for i := range f.places {
		g := &f.places[i]
		if !g.used() {
			if *g != (generation{}) {
				return "unused place is not empty"
			}
			continue
		}
		switch {
		case g.size > maxFileBytes || g.size < headerFields+footerBytes:
			return "generation of impossible size"
		case g.nodes >= g.size/blockBytes || g.live.blocks() > g.size/blockBytes:
			return "generation with more nodes than its file holds"
		case uint64(i) != f.own && g.checkpoint >= f.places[f.own].checkpoint:
			return "generation newer than the file"
		}
		used++
		nodes += uint64(g.live.nodes)
		pages += uint64(g.live.pages)
	}
	switch {
	case used > MaxGenerations:
		return "too many generations"
	case nodes != f.nodes || pages > f.pages:
		return "generations do not add up"
	}
	return ""
}
