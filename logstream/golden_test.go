package logstream

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/goldentest"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name), got, *rewrite)
}

// field is one field of a header.
type field struct {
	at, width int
	meaning   string
}

// annotate writes bytes with the meaning of each field. Bytes between the
// fields must be zero.
func annotate(w *strings.Builder, base Position, b []byte, fields []field) {
	at := 0
	for _, f := range fields {
		describeGap(w, base, b, at, f.at)
		fmt.Fprintf(w, "%06x: %-32s # %s\n", int(base)+f.at, hex.EncodeToString(b[f.at:f.at+f.width]), f.meaning)
		at = f.at + f.width
	}
	describeGap(w, base, b, at, len(b))
}

func describeGap(w *strings.Builder, base Position, b []byte, from, to int) {
	if from == to {
		return
	}
	if !allZero(b[from:to]) {
		panic(fmt.Sprintf("bytes %d to %d have no meaning", from, to))
	}
	fmt.Fprintf(w, "%06x: %-32s # zeros\n", int(base)+from, fmt.Sprintf("00 * %d", to-from))
}

func segmentFields(streams, size int) []field {
	list := []field{
		{segMagic, 8, "magic"}, {segVersion, 4, "format version"}, {segHeaderBytes, 4, "header bytes"},
		{segDatabase, 16, "database id"}, {segStream, 1, "stream"}, {segStreams, 1, "streams"}, {segFlags, 2, "flags: 1 = first of its incarnation"},
		{segBytes, 8, "segment bytes"}, {segFirst, 8, "first position"}, {segIncarnation, 8, "incarnation"}, {segSalt, 8, "salt"},
		{segPrevSalt, 8, "salt of the incarnation before"}, {segPrevEnd, 8, "end of the data before this segment"},
		{segStartRound, 8, "first round of the incarnation"}, {segStartCTS, 8, "first CTS of the incarnation"},
	}
	for s := range streams {
		list = append(list, field{segSeals + 8*s, 8, fmt.Sprintf("seal of stream %d", s)})
	}
	return append(list, field{size - checksumBytes, 8, "checksum"})
}

func roundFields(streams int) []field {
	list := []field{
		{rndMagic, 4, "magic RKRD"}, {rndLength, 4, "bytes of frames"}, {rndChecksum, 8, "checksum"}, {rndIncarnation, 8, "incarnation"},
		{rndSalt, 8, "salt"}, {rndNumber, 8, "round"}, {rndParticipants, 8, "participants"}, {rndFirst, 8, "first CTS"}, {rndLast, 8, "last CTS"},
		{rndStream, 1, "stream"}, {rndStreams, 1, "streams"},
	}
	for s := range streams {
		list = append(list, field{rndEnds + 8*s, 8, fmt.Sprintf("durable end of stream %d before the round", s)})
	}
	return list
}

var frameFields = []field{
	{frmChecksum, 8, "checksum"}, {frmLength, 4, "frame bytes"}, {frmCount, 4, "records"}, {frmPart, 4, "part"},
	{frmParts, 4, "of parts"}, {frmCTS, 8, "CTS"}, {frmFirst, 8, "CTS of part 1"},
}

func recordFields(r Record) []field {
	list := []field{
		{recChecksum, 4, "checksum"}, {recSize, 4, "record bytes"}, {recRow, 8, "row " + r.Row.String()},
		{recKind, 1, "kind: " + r.Kind.String()}, {recFlags, 1, "flags"}, {recSchema, 2, "schema version"}, {recKeys, 4, "bytes of keys"},
	}
	if r.Kind == Relocation {
		list = append(list, field{recHeader, 8, "origin: CTS"}, field{recHeader + 8, 8, "origin: " + r.Origin().Address.String()})
	} else if n := len(r.Keys); n > 0 {
		list = append(list, field{recHeader, 8, "bitmap of indexes"}, field{recHeader + 8, n - 8, "length and old key, per index"})
	}
	if n := len(r.Payload); n > 0 {
		list = append(list, field{recHeader + len(r.Keys), n, "payload"})
	}
	return list
}

// TestGoldenFormat writes a small log with all structures, in a fixed
// incarnation, and compares every byte with the annotated golden file.
func TestGoldenFormat(t *testing.T) {
	c := testCodec()
	records := []Record{sampleRecords()[0], {Kind: Image, Schema: 1, Row: sampleRecords()[1].Row, Keys: []byte{5, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 2, 'b', 'c'}, Payload: []byte("new")}, sampleRecords()[3]}
	segment := sampleSegment()
	segment.first, segment.prevEnd, segment.seals = MinSegmentBytes, 2048, []Position{1024, 2048}
	start := c.dataStart(segment.first)
	frames := start + Position(roundHeaderBytes(2))
	frame := encodeFrame(c, 30, life(segment.number, segment.salt), 1, frames, records)
	round := roundHeader{incarnation: segment.number, salt: segment.salt, number: 12, participants: 2, first: 30, last: 30,
		stream: 1, length: len(frame), ends: []Position{1024, start}}
	header := make([]byte, roundHeaderBytes(2))
	round.put(c, header, start)

	var w strings.Builder
	b := segment.encode(c.geometry, testID)
	fmt.Fprintf(&w, "# segment header of %s\n", SegmentName(1, segment.first))
	annotate(&w, segment.first, b, segmentFields(2, len(b)))
	w.WriteString("# round header\n")
	annotate(&w, start, header, roundFields(2))
	w.WriteString("# frame header\n")
	annotate(&w, frames, frame[:frmHeader], frameFields)
	at := frmHeader
	for _, r := range records {
		w.WriteString("# record\n")
		span := RecordBytes(len(r.Keys), len(r.Payload))
		annotate(&w, frames+Position(at), frame[at:at+span], recordFields(r))
		at += span
	}
	fmt.Fprintf(&w, "# zeros to %06x\n", int(start)+round.span())
	requireGolden(t, "format.txt", w.String())
}

// TestFormatPage keeps docs/format/log.md equal to the constants.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("../docs/format/log.md")
	require.NoError(t, err)
	tables := map[string][]field{
		"Segment header": segmentFields(1, 512), "Round header": roundFields(1),
		"Frame header": frameFields, "Record": recordFields(Record{}),
	}
	for title, fields := range tables {
		_, section, ok := strings.Cut(string(page), "## "+title+"\n")
		require.True(t, ok, title)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, f := range fields {
			if title == "Segment header" && f.meaning == "checksum" {
				continue // its place depends on the number of streams
			}
			require.Contains(t, section, fmt.Sprintf("| %d | %d |", f.at, f.width), "%s: %s", title, f.meaning)
		}
	}
}

// TestGoldenTranscript is the order of writes and syncs from the first commit
// over a change of segment to the next incarnation.
func TestGoldenTranscript(t *testing.T) {
	for _, streams := range []int{1, 2} {
		var log vfs.Transcript
		mem := newMem(t)
		o := testOptions(vfs.WithLog(mem, func(op vfs.Op) {
			if op.Kind.Mutates() {
				log.Add(op)
			}
		}), streams)
		commit := func(l *Log, shard uint32, size int) {
			log.Note(fmt.Sprintf("commit of %d bytes in stream %d", size, int(shard)%streams))
			tk, _, err := write(l, Request{Shard: shard}, []Record{{Kind: Insert, Payload: make([]byte, size)}})
			require.NoError(t, err)
			l.Publish(tk)
			require.NoError(t, l.Acknowledge(context.Background(), tk, true))
			settleSpace(t, l)
		}
		log.Note("open")
		l := openLog(t, o, Start{})
		commit(l, 0, 100)
		commit(l, 1, 100)
		commit(l, 0, 40000)
		commit(l, 0, 30000)
		log.Note("close")
		closeLog(t, l)
		log.Note("scan")
		tail, err := Scan(context.Background(), scanOptions(o), func(*Group) error { return nil })
		require.NoError(t, err)
		log.Note("secure")
		require.NoError(t, Secure(o, tail))
		l = openLog(t, o, tail.Start)
		commit(l, 0, 100)
		log.Note("remove a segment")
		require.NoError(t, l.RemoveSegment(0, 0))
		log.Note("close")
		closeLog(t, l)
		requireGolden(t, fmt.Sprintf("transcript-%d.txt", streams), log.String())
	}
}

// settleSpace waits until the preparer has nothing to do.
func settleSpace(t *testing.T, l *Log) {
	t.Helper()
	_, err := l.preparer.wait(context.Background(), l.preparer.ask())
	require.NoError(t, err)
}
