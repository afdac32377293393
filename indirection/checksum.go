package indirection

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/rowid"
)

// hasher makes the checksums of one table's files. Each is an xxHash64 seeded
// with the database, the table, the kind of the part and its place, so that no
// part validates in another place, table, generation or database.
type hasher struct{ base uint64 }

type part uint64

const (
	partHeader part = iota + 1
	partPage
	partPatch
	partChunk
	partFooter
)

func newHasher(id [16]byte, table rowid.Table) hasher {
	var b [18]byte
	copy(b[:], id[:])
	binary.LittleEndian.PutUint16(b[16:], uint16(table))
	return hasher{base: xxhash.Sum64(b[:])}
}

func (h hasher) sum(p part, generation, index uint64, content []byte) uint64 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], h.base)
	binary.LittleEndian.PutUint64(b[8:], uint64(p))
	binary.LittleEndian.PutUint64(b[16:], generation)
	binary.LittleEndian.PutUint64(b[24:], index)
	var d xxhash.Digest
	d.ResetWithSeed(xxhash.Sum64(b[:]))
	d.Write(content) // never fails
	return d.Sum64()
}

// page is the checksum of a page's content. It does not depend on the
// generation, because a page's entry is carried on through generations.
func (h hasher) page(page uint64, content []byte) uint32 {
	return uint32(h.sum(partPage, 0, page, content))
}

func (h hasher) patch(generation, page uint64, content []byte) uint32 {
	return uint32(h.sum(partPatch, generation, page, content))
}

func (h hasher) chunk(generation, pia uint64, content []byte) uint64 {
	return h.sum(partChunk, generation, pia, content)
}

func (h hasher) header(generation uint64, content []byte) uint64 {
	return h.sum(partHeader, generation, 0, content)
}

func (h hasher) footer(generation uint64, content []byte) uint64 {
	return h.sum(partFooter, generation, 0, content)
}
