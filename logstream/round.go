package logstream

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// roundHeader is the decoded header of a round in one stream.
type roundHeader struct {
	incarnation  uint64
	salt         uint64
	number       uint64
	participants uint64 // bit s: stream s has frames of this round
	first, last  uint64 // CTS, over all participants
	stream       int
	length       int        // bytes of the frames in this stream
	ends         []Position // of all streams, before this round; durable
}

// put writes the header with its checksum to the start of b.
func (h *roundHeader) put(c *codec, b []byte, p Position) {
	b = b[:roundHeaderBytes(len(h.ends))]
	clear(b)
	binary.LittleEndian.PutUint32(b[rndMagic:], roundMagic)
	binary.LittleEndian.PutUint32(b[rndLength:], uint32(h.length))
	binary.LittleEndian.PutUint64(b[rndIncarnation:], h.incarnation)
	binary.LittleEndian.PutUint64(b[rndSalt:], h.salt)
	binary.LittleEndian.PutUint64(b[rndNumber:], h.number)
	binary.LittleEndian.PutUint64(b[rndParticipants:], h.participants)
	binary.LittleEndian.PutUint64(b[rndFirst:], h.first)
	binary.LittleEndian.PutUint64(b[rndLast:], h.last)
	b[rndStream], b[rndStreams] = uint8(h.stream), uint8(len(h.ends))
	for i, end := range h.ends {
		binary.LittleEndian.PutUint64(b[rndEnds+8*i:], uint64(end))
	}
	binary.LittleEndian.PutUint64(b[rndChecksum:], c.roundSum(b, life(h.incarnation, h.salt), h.stream, p))
}

// readRoundHeader decodes the header at the start of b, which is to lie at p.
// ends is reused.
func (c *codec) readRoundHeader(b []byte, stream int, p Position, ends []Position) (roundHeader, flaw) {
	size := roundHeaderBytes(c.streams)
	if len(b) < size {
		return roundHeader{}, flawShort
	}
	b = b[:size]
	if binary.LittleEndian.Uint32(b[rndMagic:]) != roundMagic {
		return roundHeader{}, magicFlaw(b)
	}
	h := roundHeader{
		incarnation:  binary.LittleEndian.Uint64(b[rndIncarnation:]),
		salt:         binary.LittleEndian.Uint64(b[rndSalt:]),
		number:       binary.LittleEndian.Uint64(b[rndNumber:]),
		participants: binary.LittleEndian.Uint64(b[rndParticipants:]),
		first:        binary.LittleEndian.Uint64(b[rndFirst:]),
		last:         binary.LittleEndian.Uint64(b[rndLast:]),
		stream:       int(b[rndStream]),
		length:       int(binary.LittleEndian.Uint32(b[rndLength:])),
	}
	if c.roundSum(b, life(h.incarnation, h.salt), stream, p) != binary.LittleEndian.Uint64(b[rndChecksum:]) {
		return h, flawChecksum
	}
	if int(b[rndStreams]) != c.streams {
		return h, flawField
	}
	h.ends = ends[:0]
	for i := range c.streams {
		h.ends = append(h.ends, Position(binary.LittleEndian.Uint64(b[rndEnds+8*i:])))
	}
	return h, h.sound(c, p)
}

// sound checks what the fields say about each other and about the place.
func (h *roundHeader) sound(c *codec, p Position) flaw {
	room := min(uint64(c.next(c.segmentOf(p))-p), MaxRoundBytes)
	switch {
	case h.stream >= c.streams || h.participants>>uint(h.stream)&1 == 0 || h.participants>>uint(c.streams) != 0:
		return flawField
	case h.first < 1 || h.first > h.last || h.last-h.first > MaxRoundBytes*MaxStreams/frmHeader:
		return flawField
	case h.length < frmHeader || h.length%8 != 0 || uint64(h.span()) > room:
		return flawSize
	case h.ends[h.stream] > p:
		return flawField
	}
	return flawNone
}

// span is the room that the round takes in its stream.
func (h *roundHeader) span() int { return alignSector(roundHeaderBytes(len(h.ends)) + h.length) }

// agrees reports whether two streams tell the same about a round.
func (h *roundHeader) agrees(o *roundHeader) bool {
	return h.number == o.number && h.incarnation == o.incarnation && h.salt == o.salt &&
		h.participants == o.participants && h.first == o.first && h.last == o.last &&
		slices.Equal(h.ends, o.ends)
}

// magicFlaw tells space that was never written from other bytes.
func magicFlaw(b []byte) flaw {
	if allZero(b) {
		return flawZero
	}
	return flawMagic
}

// zeros is what allZero compares with.
var zeros [4096]byte

func allZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
