package logstream

import (
	"fmt"
	"math/bits"

	"github.com/rekindledb/rekindle/internal/fault"
)

// The constants of the format. doc.go and docs/format/log.md say what the
// fields mean; no other file holds an offset of a header.
const (
	formatVersion = 1

	segmentMagic = "\x89RKL\r\n\x1a\n" // shows text-mode conversion, as in PNG
	roundMagic   = 0x44524b52          // "RKRD"

	sectorBytes = 512 // rounds and segment headers begin and end at multiples

	// MaxRoundBytes bounds a round in one stream, header and padding included.
	// It is the W of the recovery rules: at most so much of a stream is
	// written and not durable.
	MaxRoundBytes = 2 << 20

	// MaxCTS is the largest commit timestamp.
	MaxCTS = 1<<62 - 1
)

// Segment header. The checksum is the last field of the header's last sector.
const (
	segMagic       = 0
	segVersion     = 8
	segHeaderBytes = 12
	segDatabase    = 16
	segStream      = 32
	segStreams     = 33
	segFlags       = 34
	segBytes       = 40
	segFirst       = 48
	segIncarnation = 56
	segSalt        = 64
	segPrevSalt    = 72
	segPrevEnd     = 80
	segStartRound  = 88
	segStartCTS    = 96
	segSeals       = 104
	checksumBytes  = 8

	segFlagFirst = 1 // first segment of its incarnation in its stream
)

// Round header.
const (
	rndMagic        = 0
	rndLength       = 4
	rndChecksum     = 8
	rndIncarnation  = 16
	rndSalt         = 24
	rndNumber       = 32
	rndParticipants = 40
	rndFirst        = 48
	rndLast         = 56
	rndStream       = 64
	rndStreams      = 65
	rndEnds         = 72
)

// Frame header.
const (
	frmChecksum = 0
	frmLength   = 8
	frmCount    = 12
	frmPart     = 16
	frmParts    = 20
	frmCTS      = 24
	frmFirst    = 32
	frmHeader   = 40
)

// Record header.
const (
	recChecksum = 0
	recSize     = 4
	recRow      = 8
	recKind     = 16
	recFlags    = 17
	recSchema   = 18
	recKeys     = 20
	recHeader   = 24
)

func align8(n int) int { return (n + 7) &^ 7 }

func alignSector(n int) int { return (n + sectorBytes - 1) &^ (sectorBytes - 1) }

// segmentHeaderBytes is the size of a segment header for a number of streams.
func segmentHeaderBytes(streams int) int {
	return alignSector(segSeals + 8*streams + checksumBytes)
}

// roundHeaderBytes is the size of a round header for a number of streams.
func roundHeaderBytes(streams int) int { return rndEnds + 8*streams }

// geometry is what fixes the places of things in all streams of a log.
type geometry struct {
	streams      int
	segmentBytes int64
}

func (o *Options) geometry() geometry { return geometry{o.Streams, o.SegmentBytes} }

func (g geometry) validate() error {
	if g.streams < 1 || g.streams > MaxStreams {
		return fmt.Errorf("%w: %d log streams, not 1 to %d", fault.ErrInvalidOptions, g.streams, MaxStreams)
	}
	if g.segmentBytes < MinSegmentBytes || g.segmentBytes > MaxSegmentBytes || bits.OnesCount64(uint64(g.segmentBytes)) != 1 {
		return fmt.Errorf("%w: segment size %d is not a power of two in [%d, %d]",
			fault.ErrInvalidOptions, g.segmentBytes, MinSegmentBytes, MaxSegmentBytes)
	}
	return nil
}

// segmentOf is the first position of the segment that p lies in.
func (g geometry) segmentOf(p Position) Position { return p &^ Position(g.segmentBytes-1) }

// segmentEndingAt is the first position of the segment whose data end at p: an
// end on the border belongs to the segment before it.
func (g geometry) segmentEndingAt(p Position) Position {
	if p == 0 {
		return 0
	}
	return g.segmentOf(p - 1)
}

// next is the first position of the segment after the one that begins at first.
func (g geometry) next(first Position) Position { return first + Position(g.segmentBytes) }

// dataStart is where the first round of the segment at first begins.
func (g geometry) dataStart(first Position) Position {
	return first + Position(segmentHeaderBytes(g.streams))
}

// goOn is where the first segment after data that end at p begins.
func (g geometry) goOn(end Position) Position {
	return g.segmentOf(end + Position(g.segmentBytes) - 1)
}

// maxFrame is the largest frame that fits into a round of its own.
func (g geometry) maxFrame() int {
	room := min(int(g.segmentBytes)-segmentHeaderBytes(g.streams), MaxRoundBytes)
	return (room - roundHeaderBytes(g.streams)) &^ 7
}
