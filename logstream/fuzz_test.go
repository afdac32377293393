package logstream

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/alloctest"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// The decoders of hostile bytes run with the checksum put right, so that what
// lies behind it is reached too.

func FuzzRecord(f *testing.F) {
	c := testCodec()
	for _, r := range sampleRecords() {
		f.Add(encodeFrame(c, 1, 5, 1, 4096, []Record{r})[frmHeader:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkHostileRecord(t, c, b)
		if span, flaw := recordSpan(b); flaw == flawNone && span <= len(b) {
			binary.LittleEndian.PutUint32(b, c.recordSum(b[:span], 1, 4096))
			checkHostileRecord(t, c, b)
		}
	})
}

func checkHostileRecord(t *testing.T, c *codec, b []byte) {
	span, _, flaw := c.verifyRecord(b, 1, 4096)
	if flaw != flawNone {
		return
	}
	r := recordAt(b)
	require.Equal(t, span, RecordBytes(len(r.Keys), len(r.Payload)))
	require.LessOrEqual(t, span, len(b))
}

func FuzzFrame(f *testing.F) {
	c := testCodec()
	f.Add(encodeFrame(c, 42, 5, 1, 4096, sampleRecords()))
	f.Fuzz(func(t *testing.T, b []byte) {
		checkHostileFrame(t, c, b)
		if repairFrame(c, b, 5, 1, 4096) {
			checkHostileFrame(t, c, b)
		}
	})
}

func checkHostileFrame(t *testing.T, c *codec, b []byte) {
	h, flaw := c.verifyFrame(b, 5, 1, 4096)
	if flaw != flawNone {
		return
	}
	n := 0
	require.NoError(t, eachRecord(b[:h.length], 1, 4096, func(Address, Record) error { n++; return nil }))
	require.Equal(t, h.count, n)
}

// repairFrame puts the checksums of a frame right as far as it has a shape.
func repairFrame(c *codec, b []byte, life uint64, stream int, p Position) bool {
	if len(b) < frmHeader {
		return false
	}
	h := readFrameHeader(b)
	if h.sound(len(b)) != flawNone {
		return false
	}
	var sums uint64
	for at := frmHeader; at < h.length; {
		span, flaw := recordSpan(b[at:h.length])
		if flaw != flawNone || at+span > h.length {
			return false
		}
		sum := c.recordSum(b[at:at+span], stream, p+Position(at))
		binary.LittleEndian.PutUint32(b[at:], sum)
		sums = chain(sums, sum)
		at += span
	}
	binary.LittleEndian.PutUint64(b, c.frameSum(b, sums, life, stream, p))
	return true
}

func FuzzRoundHeader(f *testing.F) {
	c, h := testCodec(), sampleRound()
	b := make([]byte, roundHeaderBytes(2))
	h.put(c, b, 4096)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = c.readRoundHeader(b, 1, 4096, nil)
		if len(b) < roundHeaderBytes(2) {
			return
		}
		repairRound(c, b, 1, 4096)
		h, flaw := c.readRoundHeader(b, 1, 4096, nil)
		if flaw != flawNone {
			return
		}
		require.LessOrEqual(t, h.span(), MinSegmentBytes-4096)
		again := make([]byte, roundHeaderBytes(2))
		h.stream = 1
		h.put(c, again, 4096)
		got, flaw := c.readRoundHeader(again, 1, 4096, nil)
		require.Equal(t, flawNone, flaw)
		require.Equal(t, h, got)
	})
}

func repairRound(c *codec, b []byte, stream int, p Position) {
	binary.LittleEndian.PutUint32(b, roundMagic)
	l := life(binary.LittleEndian.Uint64(b[rndIncarnation:]), binary.LittleEndian.Uint64(b[rndSalt:]))
	binary.LittleEndian.PutUint64(b[rndChecksum:], c.roundSum(b[:roundHeaderBytes(c.streams)], l, stream, p))
}

func FuzzSegmentHeader(f *testing.F) {
	h := sampleSegment()
	f.Add(h.encode(testGeometry, testID))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, _ = readSegmentHeader(b, "name", testGeometry, testID, 1, h.first)
		if len(b) < sectorBytes {
			return
		}
		copy(b, segmentMagic)
		binary.LittleEndian.PutUint32(b[segVersion:], formatVersion)
		repairSegment(b)
		got, flaw, err := readSegmentHeader(b, "name", testGeometry, testID, 1, h.first)
		if err != nil || flaw != flawNone {
			return
		}
		again, flaw, err := readSegmentHeader(got.encode(testGeometry, testID), "name", testGeometry, testID, 1, h.first)
		require.NoError(t, err)
		require.Equal(t, flawNone, flaw)
		require.Equal(t, got, again)
	})
}

// repairSegment puts the checksum right where the header says that it is.
func repairSegment(b []byte) {
	if size := int(binary.LittleEndian.Uint32(b[segHeaderBytes:])); size >= sectorBytes && size <= len(b) {
		putSegmentSum(b[:size])
	}
}

func FuzzSegmentName(f *testing.F) {
	f.Add("07-0000000000030000.log")
	f.Fuzz(func(t *testing.T, name string) {
		if stream, first, ok := parseSegmentName(name); ok {
			require.GreaterOrEqual(t, stream, 0)
			require.Equal(t, name, SegmentName(stream, first))
		}
	})
}

// FuzzScan scans a log in which some bytes of a segment are replaced and, if
// asked, the round's and the frame's checksums there put right: it ends, it
// does not panic, what it says is an error that names a place, and groups come
// in CTS order.
func FuzzScan(f *testing.F) {
	mem := vfs.NewMem()
	o := testOptions(mem, 2)
	if err := mem.MkdirAll("db"); err != nil {
		f.Fatal(err)
	}
	l := openLog(f, o, Start{})
	h := newHistory()
	for i := range 8 {
		if err := h.run(l, job{id: uint64(i), parts: 1 + i%3, size: 60}, uint32(i), true); err != nil {
			f.Fatal(err)
		}
	}
	closeLog(f, l)
	f.Add(uint16(0), uint16(512), []byte{1, 2, 3}, false)
	f.Add(uint16(1), uint16(1024+40), []byte{0xff, 0xff, 0xff, 0xff}, true)
	f.Add(uint16(0), uint16(0), make([]byte, 512), false)
	f.Fuzz(func(t *testing.T, stream, at uint16, b []byte, repair bool) {
		clone := mem.CrashClone(nil, vfs.Keep)
		path := segmentPath(o.Dir, int(stream%2), 0)
		content := readFile(t, clone, path)
		copy(content[at:], b)
		if repair {
			repairAll(content, o, int(stream%2))
		}
		overwrite(t, clone, path, 0, content)
		so := scanOptions(o)
		so.FS = clone
		var last uint64
		var err error
		alloctest.Bound(t, 16<<20, 10, len(content), func() {
			_, err = Scan(context.Background(), so, func(g *Group) error {
				require.Greater(t, g.CTS, last)
				last = g.CTS
				return g.Records(func(Address, Record) error { return nil })
			})
		})
		if err != nil {
			var file *fault.File
			require.ErrorAs(t, err, &file)
		}
	})
}

// repairAll puts the checksums of everything in a segment right that has its
// shape still.
func repairAll(b []byte, o Options, stream int) {
	c := newCodec(o.geometry(), o.DatabaseID)
	repairSegment(b)
	for p := segmentHeaderBytes(o.Streams); p+roundHeaderBytes(o.Streams) <= len(b); p += sectorBytes {
		round := b[p:]
		if binary.LittleEndian.Uint32(round) != roundMagic {
			continue
		}
		repairRound(&c, round, stream, Position(p))
		l := life(binary.LittleEndian.Uint64(round[rndIncarnation:]), binary.LittleEndian.Uint64(round[rndSalt:]))
		end := min(roundHeaderBytes(o.Streams)+int(binary.LittleEndian.Uint32(round[rndLength:])), len(round))
		for at := roundHeaderBytes(o.Streams); at < end; {
			if !repairFrame(&c, round[at:end], l, stream, Position(p+at)) {
				break
			}
			at += readFrameHeader(round[at:]).length
		}
	}
}
