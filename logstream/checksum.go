package logstream

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// codec computes the checksums of one log. All of them are xxhash64 of the
// bytes, mixed with a seed that says where the bytes belong: the database, the
// stream and the position, and for rounds and frames the incarnation and its
// salt too. Bytes that were copied or left over do not validate at another
// place. A record's seed has no incarnation, so that its address is enough to
// verify it.
type codec struct {
	geometry
	database uint64 // hash of the database id
}

func newCodec(g geometry, id [16]byte) codec {
	return codec{geometry: g, database: xxhash.Sum64(id[:])}
}

// Domains keep the kinds of checksums apart.
const (
	domainRecord = 0x9e3779b97f4a7c15
	domainFrame  = 0xc2b2ae3d27d4eb4f
	domainRound  = 0x165667b19e3779f9
)

// mix is the finalizer of splitmix64: a bijection in which every bit of the
// input changes every bit of the output with probability one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *codec) seed(domain uint64, stream int, p Position) uint64 {
	return mix(c.database ^ domain ^ (uint64(stream)<<(positionBits+positionShift) | uint64(p)))
}

// life is the part of a seed that stands for an incarnation.
func life(incarnation, salt uint64) uint64 { return mix(incarnation ^ mix(salt)) }

// recordSum is the checksum of a padded record at p.
func (c *codec) recordSum(b []byte, stream int, p Position) uint32 {
	return uint32(mix(xxhash.Sum64(b[recSize:])^c.seed(domainRecord, stream, p)) >> 32)
}

// chain adds the checksum of the next record to those of the frame so far.
func chain(sum uint64, record uint32) uint64 {
	return bits.RotateLeft64((sum^uint64(record))*domainFrame, 31)
}

// frameSum is the checksum of a frame's header and of its records' checksums,
// which are given chained.
func (c *codec) frameSum(header []byte, records, life uint64, stream int, p Position) uint64 {
	seed := c.seed(domainFrame, stream, p) ^ life
	return mix(mix(xxhash.Sum64(header[frmLength:frmHeader])^seed) ^ records)
}

// roundSum is the checksum of a round's header.
func (c *codec) roundSum(header []byte, life uint64, stream int, p Position) uint64 {
	seed := c.seed(domainRound, stream, p) ^ life
	front := mix(binary.LittleEndian.Uint64(header) ^ seed)
	return mix(xxhash.Sum64(header[rndIncarnation:]) ^ front)
}
