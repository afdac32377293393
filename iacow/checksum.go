package iacow

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// hasher makes the checksums of one index's files. Each is an xxHash64 seeded
// with the database, the table, the index, the kind of the part and where it
// belongs, so that no part validates in another place, index or database.
type hasher struct{ base uint64 }

type part uint64

const (
	partHeader part = iota + 1
	partNode
	partPage
	partChunk
	partFooter
)

func newHasher(id identity) hasher {
	var b [20]byte
	copy(b[:], id.database[:])
	binary.LittleEndian.PutUint16(b[16:], id.table)
	binary.LittleEndian.PutUint16(b[18:], id.index)
	return hasher{base: xxhash.Sum64(b[:])}
}

// seed is that of a part of the file with the given checkpoint and salt.
func (h hasher) seed(p part, checkpoint, salt uint64) uint64 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], h.base)
	binary.LittleEndian.PutUint64(b[8:], uint64(p))
	binary.LittleEndian.PutUint64(b[16:], checkpoint)
	binary.LittleEndian.PutUint64(b[24:], salt)
	return xxhash.Sum64(b[:])
}

func seeded(seed uint64, content []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.Write(content) // never fails
	return d.Sum64()
}

func (h hasher) header(content []byte) uint64 {
	return seeded(h.seed(partHeader, 0, 0), content)
}

// page is the checksum of a page of the node table. It does not depend on the
// file, because a page's directory entry is carried on through generations.
func (h hasher) page(page uint64, content []byte) uint64 {
	return seeded(h.seed(partPage, 0, 0)+page, content)
}

func (h hasher) chunk(checkpoint, salt, chunk uint64, content []byte) uint64 {
	return seeded(h.seed(partChunk, checkpoint, salt)+chunk, content)
}

func (h hasher) footer(checkpoint, salt uint64, content []byte) uint64 {
	return seeded(h.seed(partFooter, checkpoint, salt), content)
}

// nodeSum is the checksum of a node image in a block of a file whose node seed
// is given.
func nodeSum(seed uint64, block uint32, image []byte) uint64 {
	return seeded(seed+uint64(block), image[nodeSumBytes:blockBytes])
}

// nodeSumBytes is the size of the checksum at the start of a node image, where
// nodes in memory have their version.
const nodeSumBytes = 8
