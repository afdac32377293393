package logstream

import (
	"encoding/binary"

	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// frameHeader is the decoded header of a frame.
type frameHeader struct {
	length      int // of the frame, header included
	count       int // records
	part, parts uint32
	cts, first  uint64
}

func (h *frameHeader) put(b []byte) {
	binary.LittleEndian.PutUint32(b[frmLength:], uint32(h.length))
	binary.LittleEndian.PutUint32(b[frmCount:], uint32(h.count))
	binary.LittleEndian.PutUint32(b[frmPart:], h.part)
	binary.LittleEndian.PutUint32(b[frmParts:], h.parts)
	binary.LittleEndian.PutUint64(b[frmCTS:], h.cts)
	binary.LittleEndian.PutUint64(b[frmFirst:], h.first)
}

func readFrameHeader(b []byte) frameHeader {
	return frameHeader{
		length: int(binary.LittleEndian.Uint32(b[frmLength:])),
		count:  int(binary.LittleEndian.Uint32(b[frmCount:])),
		part:   binary.LittleEndian.Uint32(b[frmPart:]),
		parts:  binary.LittleEndian.Uint32(b[frmParts:]),
		cts:    binary.LittleEndian.Uint64(b[frmCTS:]),
		first:  binary.LittleEndian.Uint64(b[frmFirst:]),
	}
}

// sound checks what the fields say about each other.
func (h *frameHeader) sound(room int) flaw {
	switch {
	case h.length < frmHeader || h.length > room || h.length%8 != 0:
		return flawSize
	case h.part < 1 || h.part > h.parts:
		return flawField
	case h.first < 1 || h.first > h.cts || (h.part == 1) != (h.first == h.cts):
		return flawField
	}
	return flawNone
}

// verifyFrame checks the frame at the start of b, which is to lie at p, with
// all its records.
func (c *codec) verifyFrame(b []byte, life uint64, stream int, p Position) (frameHeader, flaw) {
	if len(b) < frmHeader {
		return frameHeader{}, flawShort
	}
	h := readFrameHeader(b)
	if f := h.sound(len(b)); f != flawNone {
		return h, f
	}
	var sums uint64
	count := 0
	for at := frmHeader; at < h.length; count++ {
		span, sum, f := c.verifyRecord(b[at:h.length], stream, p+Position(at))
		if f != flawNone {
			return h, f
		}
		sums = chain(sums, sum)
		at += span
	}
	if count != h.count {
		return h, flawField
	}
	if c.frameSum(b, sums, life, stream, p) != binary.LittleEndian.Uint64(b) {
		return h, flawChecksum
	}
	return h, flawNone
}

// Encoder writes the records of one frame into its ticket's buffer.
type Encoder struct {
	log    *Log
	ticket *Ticket
	at     int
	count  int
	sums   uint64
}

// Encode starts the frame of a ticket. The ticket must stay where it is until
// Finish.
func (l *Log) Encode(t *Ticket) Encoder { return Encoder{log: l, ticket: t, at: frmHeader} }

// Append adds a record and returns the address at which it can be read once
// its round is durable. keys as in Record.Keys.
func (e *Encoder) Append(kind Kind, row rowid.ID, schema uint16, keys, payload []byte) Address {
	t, at := e.ticket, e.at
	e.at += RecordBytes(len(keys), len(payload))
	b, p := t.Buf[at:e.at], t.Pos+Position(at)
	putRecord(b, &Record{Kind: kind, Schema: schema, Row: row, Keys: keys, Payload: payload})
	sum := e.log.recordSum(b, t.Stream, p)
	binary.LittleEndian.PutUint32(b[recChecksum:], sum)
	e.sums = chain(e.sums, sum)
	e.count++
	return MakeAddress(t.Stream, p, len(b))
}

// Finish completes the frame. The records must fill what was reserved exactly.
func (e *Encoder) Finish() {
	t := e.ticket
	if invariants.Enabled && e.at != len(t.Buf) {
		invariants.Fail("frame of %d bytes in a reservation of %d", e.at, len(t.Buf))
	}
	h := frameHeader{len(t.Buf), e.count, t.part, t.parts, t.CTS, t.first}
	h.put(t.Buf)
	sum := e.log.frameSum(t.Buf, e.sums, e.log.life, t.Stream, t.Pos)
	binary.LittleEndian.PutUint64(t.Buf[frmChecksum:], sum)
}
