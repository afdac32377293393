package logstream

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Segment is one file of a stream. It holds the positions [First, End).
type Segment struct {
	Stream int
	First  Position
	End    Position
}

// SegmentName is the file name of a segment.
func SegmentName(stream int, first Position) string {
	return fmt.Sprintf("%02d-%016x.log", stream, uint64(first))
}

// parseSegmentName is the reverse of SegmentName; other names are not ok.
func parseSegmentName(name string) (stream int, first Position, ok bool) {
	number, rest, _ := strings.Cut(name, "-")
	position, _ := strings.CutSuffix(rest, ".log")
	s, badStream := strconv.ParseUint(number, 10, 16)
	p, badPosition := strconv.ParseUint(position, 16, 64)
	if badStream != nil || badPosition != nil {
		return 0, 0, false
	}
	stream, first = int(s), Position(p)
	return stream, first, SegmentName(stream, first) == name
}

// incarnation is one life of a log, from the first commit after an Open to
// the end of the process. All its segments repeat it.
type incarnation struct {
	number     uint64
	salt       uint64     // random: tells copies of one database apart
	prevSalt   uint64     // of the incarnation before
	startRound uint64     // its first round
	startCTS   uint64     // its first CTS
	seals      []Position // where the streams ended when it began
}

func (i *incarnation) equal(o *incarnation) bool {
	same := i.number == o.number && i.salt == o.salt && i.prevSalt == o.prevSalt &&
		i.startRound == o.startRound && i.startCTS == o.startCTS && len(i.seals) == len(o.seals)
	for s := range i.seals {
		same = same && i.seals[s] == o.seals[s]
	}
	return same
}

// segmentHeader is the decoded header of a segment.
type segmentHeader struct {
	incarnation
	stream    int
	first     Position
	prevEnd   Position // where the stream's data end before this segment
	firstLife bool     // first segment of its incarnation in its stream
}

// encode returns the bytes of the header.
func (h *segmentHeader) encode(g geometry, id [16]byte) []byte {
	b := make([]byte, segmentHeaderBytes(g.streams))
	copy(b[segMagic:], segmentMagic)
	binary.LittleEndian.PutUint32(b[segVersion:], formatVersion)
	binary.LittleEndian.PutUint32(b[segHeaderBytes:], uint32(len(b)))
	copy(b[segDatabase:], id[:])
	b[segStream], b[segStreams] = uint8(h.stream), uint8(g.streams)
	if h.firstLife {
		b[segFlags] = segFlagFirst
	}
	binary.LittleEndian.PutUint64(b[segBytes:], uint64(g.segmentBytes))
	binary.LittleEndian.PutUint64(b[segFirst:], uint64(h.first))
	binary.LittleEndian.PutUint64(b[segIncarnation:], h.number)
	binary.LittleEndian.PutUint64(b[segSalt:], h.salt)
	binary.LittleEndian.PutUint64(b[segPrevSalt:], h.prevSalt)
	binary.LittleEndian.PutUint64(b[segPrevEnd:], uint64(h.prevEnd))
	binary.LittleEndian.PutUint64(b[segStartRound:], h.startRound)
	binary.LittleEndian.PutUint64(b[segStartCTS:], h.startCTS)
	for s, end := range h.seals {
		binary.LittleEndian.PutUint64(b[segSeals+8*s:], uint64(end))
	}
	putSegmentSum(b)
	return b
}

// putSegmentSum completes a header, of which b is all.
func putSegmentSum(b []byte) {
	at := len(b) - checksumBytes
	binary.LittleEndian.PutUint64(b[at:], xxhash.Sum64(b[:at]))
}

// readSegmentHeader decodes the header b of the segment of stream at first. A flaw
// means that there is no usable header; an error that the file is none of this log's.
func readSegmentHeader(b []byte, path string, g geometry, id [16]byte, stream int, first Position) (segmentHeader, flaw, error) {
	switch {
	case allZero(b):
		return segmentHeader{}, flawZero, nil
	case len(b) < sectorBytes:
		return segmentHeader{}, flawShort, nil
	case string(b[segMagic:segVersion]) != segmentMagic:
		return segmentHeader{}, flawMagic, nil
	}
	if v := binary.LittleEndian.Uint32(b[segVersion:]); v != formatVersion {
		return segmentHeader{}, flawNone, &fault.File{Kind: fault.ErrFormat, Path: path, Reason: fmt.Sprintf("log format version %d, known is %d", v, formatVersion)}
	}
	own := int(binary.LittleEndian.Uint32(b[segHeaderBytes:]))
	if own != segmentHeaderBytes(int(b[segStreams])) || own > len(b) {
		return segmentHeader{}, flawSize, nil
	}
	if at := own - checksumBytes; xxhash.Sum64(b[:at]) != binary.LittleEndian.Uint64(b[at:]) {
		return segmentHeader{}, flawChecksum, nil
	}
	if err := checkSegmentIdentity(b, path, g, id); err != nil {
		return segmentHeader{}, flawNone, err
	}
	h := parseSegmentHeader(b)
	if h.stream != stream || h.first != first {
		return h, flawPlace, nil
	}
	return h, h.sound(g), nil
}

// checkSegmentIdentity compares what a valid header says about its log.
func checkSegmentIdentity(b []byte, path string, g geometry, id [16]byte) error {
	if string(b[segDatabase:segDatabase+16]) != string(id[:]) {
		return &fault.File{Kind: fault.ErrForeignFile, Path: path, Reason: fmt.Sprintf("database id %x, expected %x", b[segDatabase:segDatabase+16], id)}
	}
	if n := int(b[segStreams]); n != g.streams {
		return g.foreign(path, fmt.Sprintf("a segment of a log with %d streams", n))
	}
	if n := binary.LittleEndian.Uint64(b[segBytes:]); n != uint64(g.segmentBytes) {
		return g.foreign(path, fmt.Sprintf("a segment of %d bytes", n))
	}
	return nil
}

func parseSegmentHeader(b []byte) segmentHeader {
	h := segmentHeader{
		stream:    int(b[segStream]),
		first:     Position(binary.LittleEndian.Uint64(b[segFirst:])),
		prevEnd:   Position(binary.LittleEndian.Uint64(b[segPrevEnd:])),
		firstLife: b[segFlags]&segFlagFirst != 0,
		incarnation: incarnation{
			number:     binary.LittleEndian.Uint64(b[segIncarnation:]),
			salt:       binary.LittleEndian.Uint64(b[segSalt:]),
			prevSalt:   binary.LittleEndian.Uint64(b[segPrevSalt:]),
			startRound: binary.LittleEndian.Uint64(b[segStartRound:]),
			startCTS:   binary.LittleEndian.Uint64(b[segStartCTS:]),
		},
	}
	for s := range int(b[segStreams]) {
		h.seals = append(h.seals, Position(binary.LittleEndian.Uint64(b[segSeals+8*s:])))
	}
	return h
}

// sound checks what the fields say about each other. The data before a
// segment end in the segment right before it.
func (h *segmentHeader) sound(g geometry) flaw {
	before := Position(0)
	if h.first > 0 {
		before = g.dataStart(h.first - Position(g.segmentBytes))
	}
	switch {
	case h.first%Position(g.segmentBytes) != 0 || h.first >= MaxPosition:
		return flawField
	case h.prevEnd < before || h.prevEnd > h.first || h.prevEnd%sectorBytes != 0:
		return flawField
	case h.firstLife && h.seals[h.stream] != h.prevEnd:
		return flawField
	case h.number == 0 || h.startRound == 0 || h.startCTS == 0:
		return flawField
	}
	return flawNone
}

func joinPath(dir, name string) string { return filepath.Join(dir, name) }
func segmentPath(dir string, stream int, first Position) string {
	return joinPath(dir, SegmentName(stream, first))
}
