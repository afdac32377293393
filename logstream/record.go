package logstream

import (
	"encoding/binary"
	"fmt"

	"github.com/rekindledb/rekindle/rowid"
)

// Kind is what a record does to its row.
type Kind uint8

const (
	Insert Kind = 1 // a new row: the payload is its image
	Image  Kind = 2 // an update: the payload is the whole new row
	Delete Kind = 4 // the row ends: no payload
	// Relocation is the image of a row at another address of the log: it counts
	// only if, in commit order, the row is still at Origin.Address.
	Relocation Kind = 5
	// 3 (delta) and 6 (extent reference) are reserved.
)

func (k Kind) String() string {
	switch k {
	case Insert:
		return "insert"
	case Image:
		return "image"
	case Delete:
		return "delete"
	case Relocation:
		return "relocation"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

func (k Kind) known() bool { return k == Insert || k == Image || k == Delete || k == Relocation }

// Record is one record of the log. Keys and Payload point into a buffer of
// whoever decoded it and share its lifetime.
type Record struct {
	Kind   Kind
	Schema uint16
	Row    rowid.ID
	// Keys are the old keys of the indexes that the record changes: a 64-bit
	// little-endian bitmap of the indexes, then per set bit, ascending, a
	// uvarint length and the key. Empty when there is none. A Relocation has its
	// Origin here.
	Keys    []byte
	Payload []byte
}

// Origin is where the image of a Relocation comes from.
type Origin struct {
	CTS     uint64  // of the frame that held it first
	Address Address // that the relocation replaces
}

// OriginBytes is the size of an encoded Origin.
const OriginBytes = 16

// AppendTo appends what the Keys of a Relocation are.
func (o Origin) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, o.CTS)
	return binary.LittleEndian.AppendUint64(dst, uint64(o.Address))
}

// Origin is that of a Relocation; the zero value for other kinds.
func (r *Record) Origin() Origin {
	if r.Kind != Relocation {
		return Origin{}
	}
	return readOrigin(r.Keys)
}

func readOrigin(b []byte) Origin {
	return Origin{CTS: binary.LittleEndian.Uint64(b), Address: Address(binary.LittleEndian.Uint64(b[8:]))}
}

func (o Origin) sound() bool { return o.CTS > 0 && o.CTS <= MaxCTS && o.Address.IsValid() }

// RecordBytes is the room that a record takes in its frame.
func RecordBytes(keys, payload int) int { return align8(recHeader + keys + payload) }

// FrameBytes is the size of a frame whose records take so many bytes in all.
func FrameBytes(records int) int { return frmHeader + records }

// putRecord fills dst, which is RecordBytes long, except for the checksum.
func putRecord(dst []byte, r *Record) {
	size := recHeader + len(r.Keys) + len(r.Payload)
	binary.LittleEndian.PutUint32(dst[recSize:], uint32(size))
	binary.LittleEndian.PutUint64(dst[recRow:], uint64(r.Row))
	binary.LittleEndian.PutUint32(dst[recKind:], uint32(r.Kind)|uint32(r.Schema)<<16)
	binary.LittleEndian.PutUint32(dst[recKeys:], uint32(len(r.Keys)))
	n := recHeader + copy(dst[recHeader:], r.Keys)
	n += copy(dst[n:], r.Payload)
	clear(dst[n:])
}

// recordSpan is the padded size of the record at the start of b.
func recordSpan(b []byte) (int, flaw) {
	if len(b) < recHeader {
		return 0, flawShort
	}
	size := uint64(binary.LittleEndian.Uint32(b[recSize:]))
	if size < recHeader || size > MaxRoundBytes {
		return 0, flawSize
	}
	return align8(int(size)), flawNone
}

// verifyRecord checks the record at the start of b, which is to lie at p, and
// returns its padded size and its checksum.
func (c *codec) verifyRecord(b []byte, stream int, p Position) (span int, sum uint32, f flaw) {
	span, f = recordSpan(b)
	switch {
	case f != flawNone:
		return 0, 0, f
	case span > len(b):
		return 0, 0, flawShort
	}
	sum = binary.LittleEndian.Uint32(b[recChecksum:])
	if c.recordSum(b[:span], stream, p) != sum {
		return 0, 0, flawChecksum
	}
	size, keys := binary.LittleEndian.Uint32(b[recSize:]), binary.LittleEndian.Uint32(b[recKeys:])
	if keys > size-recHeader || b[recFlags] != 0 || !Kind(b[recKind]).known() {
		return 0, 0, flawField
	}
	if Kind(b[recKind]) == Relocation && (keys != OriginBytes || !readOrigin(b[recHeader:]).sound()) {
		return 0, 0, flawField
	}
	return span, sum, flawNone
}

// recordAt splits a verified record.
func recordAt(b []byte) Record {
	size := binary.LittleEndian.Uint32(b[recSize:])
	keys := recHeader + binary.LittleEndian.Uint32(b[recKeys:])
	return Record{
		Kind:    Kind(b[recKind]),
		Schema:  binary.LittleEndian.Uint16(b[recSchema:]),
		Row:     rowid.ID(binary.LittleEndian.Uint64(b[recRow:])),
		Keys:    b[recHeader:keys:keys],
		Payload: b[keys:size:size],
	}
}
