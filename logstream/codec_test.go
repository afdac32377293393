package logstream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

var testGeometry = geometry{streams: 2, segmentBytes: MinSegmentBytes}

func testCodec() *codec {
	c := newCodec(testGeometry, testID)
	return &c
}

func sampleOrigin() Origin { return Origin{CTS: 21, Address: MakeAddress(1, 1<<20, 64)} }

func sampleRecords() []Record {
	return []Record{
		{Kind: Insert, Schema: 3, Row: rowid.Make(2, 7), Payload: []byte("a payload")},
		{Kind: Image, Row: rowid.Make(2, 8), Keys: []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 'o', 'k'}, Payload: []byte("12345678")},
		{Kind: Delete, Row: rowid.Make(2, 9), Keys: []byte{0, 0, 0, 0, 0, 0, 0, 0}},
		{Kind: Relocation, Schema: 2, Row: rowid.Make(2, 10), Keys: sampleOrigin().AppendTo(nil), Payload: []byte("moved")},
	}
}

// encodeFrame builds a frame of part 1 of 1 as the Encoder does.
func encodeFrame(c *codec, cts, life uint64, stream int, p Position, records []Record) []byte {
	n := 0
	for _, r := range records {
		n += RecordBytes(len(r.Keys), len(r.Payload))
	}
	l := &Log{codec: *c, life: life}
	t := Ticket{CTS: cts, Stream: stream, Pos: p, Buf: make([]byte, FrameBytes(n)), first: cts, part: 1, parts: 1}
	e := l.Encode(&t)
	for _, r := range records {
		e.Append(r.Kind, r.Row, r.Schema, r.Keys, r.Payload)
	}
	e.Finish()
	return t.Buf
}

func TestRecordRoundTrip(t *testing.T) {
	c := testCodec()
	for _, r := range sampleRecords() {
		frame := encodeFrame(c, 1, 5, 1, 4096, []Record{r})
		b := frame[frmHeader:]
		span, _, f := c.verifyRecord(b, 1, 4096+frmHeader)
		require.Equal(t, flawNone, f)
		require.Equal(t, len(b), span)
		require.Equal(t, RecordBytes(len(r.Keys), len(r.Payload)), span)
		requireRecord(t, r, recordAt(b))

		_, _, f = c.verifyRecord(b, 0, 4096+frmHeader)
		require.Equal(t, flawChecksum, f, "other stream")
		_, _, f = c.verifyRecord(b, 1, 4096+frmHeader+8)
		require.Equal(t, flawChecksum, f, "other position")
		other := newCodec(testGeometry, [16]byte{9})
		_, _, f = other.verifyRecord(b, 1, 4096+frmHeader)
		require.Equal(t, flawChecksum, f, "other database")
		for n := range b {
			_, _, f = c.verifyRecord(b[:n], 1, 4096+frmHeader)
			require.Equal(t, flawShort, f)
		}
		eachFlip(b, func(at int) {
			_, _, f := c.verifyRecord(b, 1, 4096+frmHeader)
			require.NotEqual(t, flawNone, f, "byte %d", at)
		})
	}
}

func TestOrigin(t *testing.T) {
	c := testCodec()
	records := sampleRecords()
	for _, r := range records[:3] {
		require.Zero(t, r.Origin())
	}
	require.Equal(t, sampleOrigin(), records[3].Origin())

	for name, keys := range map[string][]byte{
		"no origin":         nil,
		"one cut short":     records[3].Keys[:OriginBytes-1],
		"one and more":      append(sampleOrigin().AppendTo(nil), 0),
		"no CTS":            Origin{Address: sampleOrigin().Address}.AppendTo(nil),
		"CTS of no commit":  Origin{CTS: MaxCTS + 1, Address: sampleOrigin().Address}.AppendTo(nil),
		"no former address": Origin{CTS: 1}.AppendTo(nil),
	} {
		b := encodeFrame(c, 1, 5, 1, 4096, []Record{{Kind: Relocation, Keys: keys, Payload: []byte("a payload that is longer than an origin")}})
		_, _, f := c.verifyRecord(b[frmHeader:], 1, 4096+frmHeader)
		require.Equal(t, flawField, f, name)
	}
}

// eachFlip flips every bit of b in turn.
func eachFlip(b []byte, check func(at int)) {
	for at := range b {
		for bit := range 8 {
			b[at] ^= 1 << bit
			check(at)
			b[at] ^= 1 << bit
		}
	}
}

func TestFrameRoundTrip(t *testing.T) {
	c := testCodec()
	b := encodeFrame(c, 42, 5, 1, 4096, sampleRecords())
	h, f := c.verifyFrame(b, 5, 1, 4096)
	require.Equal(t, flawNone, f)
	require.Equal(t, frameHeader{length: len(b), count: 4, part: 1, parts: 1, cts: 42, first: 42}, h)

	i := 0
	require.NoError(t, eachRecord(b, 1, 4096, func(a Address, r Record) error {
		requireRecord(t, sampleRecords()[i], r)
		require.Equal(t, 1, a.Stream())
		i++
		return nil
	}))
	require.Equal(t, 4, i)

	for _, bad := range []struct {
		name   string
		life   uint64
		stream int
		pos    Position
	}{{"life", 6, 1, 4096}, {"stream", 5, 0, 4096}, {"position", 5, 1, 4104}} {
		_, f = c.verifyFrame(b, bad.life, bad.stream, bad.pos)
		require.Equal(t, flawChecksum, f, bad.name)
	}
	for n := range b {
		_, f = c.verifyFrame(b[:n], 5, 1, 4096)
		require.NotEqual(t, flawNone, f)
	}
	eachFlip(b, func(at int) {
		_, f := c.verifyFrame(b, 5, 1, 4096)
		require.NotEqual(t, flawNone, f, "byte %d", at)
	})
}

func TestFrameFieldsMustFitTogether(t *testing.T) {
	good := frameHeader{length: 64, count: 1, part: 2, parts: 3, cts: 9, first: 8}
	require.Equal(t, flawNone, good.sound(64))
	for name, change := range map[string]func(*frameHeader){
		"longer than the room": func(h *frameHeader) { h.length = 72 },
		"no header":            func(h *frameHeader) { h.length = 32 },
		"not aligned":          func(h *frameHeader) { h.length = 60 },
		"part 0":               func(h *frameHeader) { h.part = 0 },
		"part behind the last": func(h *frameHeader) { h.part = 4 },
		"first without a CTS":  func(h *frameHeader) { h.first = 0 },
		"first is later":       func(h *frameHeader) { h.first = 10 },
		"part 2 is the first":  func(h *frameHeader) { h.first = 9 },
		"part 1 is not":        func(h *frameHeader) { h.part = 1 },
	} {
		bad := good
		change(&bad)
		require.NotEqual(t, flawNone, bad.sound(64), name)
	}
}

func sampleRound() roundHeader {
	return roundHeader{incarnation: 3, salt: 0x5a17, number: 17, participants: 3, first: 40, last: 42,
		stream: 1, length: 128, ends: []Position{1024, 4096}}
}

func TestRoundHeaderRoundTrip(t *testing.T) {
	c, want := testCodec(), sampleRound()
	b := make([]byte, roundHeaderBytes(2))
	want.put(c, b, 4096)
	got, f := c.readRoundHeader(b, 1, 4096, nil)
	require.Equal(t, flawNone, f)
	require.Equal(t, want, got)
	require.Equal(t, 512, got.span())

	_, f = c.readRoundHeader(b, 1, 4608, nil)
	require.Equal(t, flawChecksum, f)
	_, f = c.readRoundHeader(b, 0, 4096, nil)
	require.Equal(t, flawChecksum, f)
	for n := range b {
		_, f = c.readRoundHeader(b[:n], 1, 4096, nil)
		require.Equal(t, flawShort, f)
	}
	eachFlip(b, func(at int) {
		_, f := c.readRoundHeader(b, 1, 4096, nil)
		require.NotEqual(t, flawNone, f, "byte %d", at)
	})
	_, f = c.readRoundHeader(make([]byte, 512), 1, 4096, nil)
	require.Equal(t, flawZero, f)
}

func TestRoundFieldsMustFitTogether(t *testing.T) {
	c := testCodec()
	good := sampleRound()
	require.Equal(t, flawNone, good.sound(c, 4096))
	for name, change := range map[string]func(*roundHeader){
		"stream that is none":       func(h *roundHeader) { h.stream = 2 },
		"stream does not take part": func(h *roundHeader) { h.participants = 1 },
		"participant that is none":  func(h *roundHeader) { h.participants = 7 },
		"no CTS":                    func(h *roundHeader) { h.first = 0 },
		"CTS backwards":             func(h *roundHeader) { h.last = 39 },
		"more CTS than fit":         func(h *roundHeader) { h.last = 1 << 40 },
		"no frame":                  func(h *roundHeader) { h.length = 0 },
		"not aligned":               func(h *roundHeader) { h.length = 121 },
		"beyond the segment":        func(h *roundHeader) { h.length = MinSegmentBytes - 4096 },
		"longer than a round":       func(h *roundHeader) { h.length = MaxRoundBytes },
		"durable behind itself":     func(h *roundHeader) { h.ends = []Position{1024, 4608} },
	} {
		bad := good
		change(&bad)
		require.NotEqual(t, flawNone, bad.sound(c, 4096), name)
	}
}

func sampleSegment() segmentHeader {
	return segmentHeader{
		incarnation: incarnation{number: 3, salt: 0x5a17, prevSalt: 0x01d, startRound: 12, startCTS: 30, seals: []Position{2048, 70144}},
		stream:      1,
		first:       2 * MinSegmentBytes,
		prevEnd:     70144,
		firstLife:   true,
	}
}

func TestSegmentHeaderRoundTrip(t *testing.T) {
	want := sampleSegment()
	b := want.encode(testGeometry, testID)
	require.Len(t, b, 512)
	read := func(stream int, first Position) (segmentHeader, flaw, error) {
		return readSegmentHeader(b, "name", testGeometry, testID, stream, first)
	}
	got, f, err := read(1, 2*MinSegmentBytes)
	require.NoError(t, err)
	require.Equal(t, flawNone, f)
	require.Equal(t, want, got)

	_, f, err = read(0, 2*MinSegmentBytes)
	require.NoError(t, err)
	require.Equal(t, flawPlace, f)
	_, f, err = read(1, MinSegmentBytes)
	require.NoError(t, err)
	require.Equal(t, flawPlace, f)
	eachFlip(b, func(at int) {
		_, f, err := read(1, 2*MinSegmentBytes)
		require.True(t, err != nil || f != flawNone, "byte %d", at)
	})
	for n := range b {
		_, f, err := readSegmentHeader(b[:n], "name", testGeometry, testID, 1, 2*MinSegmentBytes)
		require.NoError(t, err)
		require.NotEqual(t, flawNone, f)
	}
}

func TestSegmentOfAnotherLogIsRefused(t *testing.T) {
	h := sampleSegment()
	b := h.encode(testGeometry, testID)
	read := func(g geometry, id [16]byte) error {
		_, _, err := readSegmentHeader(b, "name", g, id, 1, h.first)
		return err
	}
	require.ErrorIs(t, read(testGeometry, [16]byte{1}), fault.ErrForeignFile)
	require.ErrorIs(t, read(geometry{3, MinSegmentBytes}, testID), fault.ErrForeignFile)
	require.ErrorIs(t, read(geometry{2, 2 * MinSegmentBytes}, testID), fault.ErrForeignFile)
	b[segVersion]++
	require.ErrorIs(t, read(testGeometry, testID), fault.ErrFormat)
	require.ErrorContains(t, read(testGeometry, testID), "version 2")
}

func TestSegmentFieldsMustFitTogether(t *testing.T) {
	for name, change := range map[string]func(*segmentHeader){
		"first inside a segment":  func(h *segmentHeader) { h.first += 512 },
		"first too large":         func(h *segmentHeader) { h.first = MaxPosition },
		"end two segments before": func(h *segmentHeader) { h.prevEnd = 1024 },
		"end behind the start":    func(h *segmentHeader) { h.prevEnd = h.first + 512 },
		"end not on a sector":     func(h *segmentHeader) { h.prevEnd += 8 },
		"end is not the seal":     func(h *segmentHeader) { h.prevEnd += 512 },
		"no incarnation":          func(h *segmentHeader) { h.number = 0 },
		"no round":                func(h *segmentHeader) { h.startRound = 0 },
		"no CTS":                  func(h *segmentHeader) { h.startCTS = 0 },
	} {
		bad := sampleSegment()
		require.Equal(t, flawNone, bad.sound(testGeometry))
		change(&bad)
		require.NotEqual(t, flawNone, bad.sound(testGeometry), name)
	}
}

func TestSegmentNames(t *testing.T) {
	name := SegmentName(7, 0x30000)
	require.Equal(t, "07-0000000000030000.log", name)
	stream, first, ok := parseSegmentName(name)
	require.True(t, ok)
	require.Equal(t, 7, stream)
	require.Equal(t, Position(0x30000), first)
	for _, bad := range []string{"", "07-30000.log", "7-0000000000030000.log", name + ".dropped-3", "extent-1.log",
		"07-000000000003000G.log", "07-0000000000030000.LOG", " 7-0000000000030000.log", "-7-0000000000030000.log"} {
		_, _, ok := parseSegmentName(bad)
		require.False(t, ok, bad)
	}
}

func TestHeadersOfManyStreams(t *testing.T) {
	g := geometry{MaxStreams, DefaultSegmentBytes}
	c := newCodec(g, testID)
	require.Equal(t, 1024, segmentHeaderBytes(MaxStreams))
	h := roundHeader{incarnation: 1, number: 1, participants: 1 << 62, first: 1, last: 1, stream: 62, length: 40, ends: make([]Position, MaxStreams)}
	b := make([]byte, roundHeaderBytes(MaxStreams))
	h.put(&c, b, 1024)
	got, f := c.readRoundHeader(b, 62, 1024, nil)
	require.Equal(t, flawNone, f)
	require.Equal(t, h, got)
	require.Equal(t, 1024, got.span())
}

func TestGeometry(t *testing.T) {
	g := testGeometry
	const size = MinSegmentBytes
	require.Equal(t, Position(0), g.segmentEndingAt(0))
	require.Equal(t, Position(0), g.segmentEndingAt(size))
	require.Equal(t, Position(size), g.segmentEndingAt(size+512))
	require.Equal(t, Position(0), g.goOn(0))
	require.Equal(t, Position(size), g.goOn(512))
	require.Equal(t, Position(size), g.goOn(size))
	require.Equal(t, Position(2*size), g.goOn(size+512))
	for _, bad := range []geometry{{0, size}, {64, size}, {1, size / 2}, {1, size + 512}, {1, 2 * MaxSegmentBytes}} {
		require.ErrorIs(t, bad.validate(), fault.ErrInvalidOptions)
	}
	require.Equal(t, MaxRoundBytes-roundHeaderBytes(1), geometry{1, DefaultSegmentBytes}.maxFrame())
	require.Equal(t, size-512-roundHeaderBytes(2), g.maxFrame())
}
