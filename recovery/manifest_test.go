package recovery

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/alloctest"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

var testHeader = Header{Format: FormatVersion, DatabaseID: ID{1, 2, 0xff}, LogStreams: 2, SegmentBytes: 64 << 10, Strategy: "rebuild"}

func testCheckpoint(n uint64) Checkpoint {
	return Checkpoint{
		Number: n, CTS: 100 * n, Round: 10 * n,
		Replay: []logstream.Position{512 * logstream.Position(n), 0},
		Ends:   []logstream.Position{512 * logstream.Position(n), 0},
		Tables: []TableImage{{Table: 3, Generation: indirection.Generation{Number: n, Size: 5000, Sum: 1 << 63}, Files: []string{"ckpt/000001/array-3.ria"}}},
		Live:   []SegmentLive{{Stream: 1, First: 65536, Bytes: 77}},
	}
}

func parseBytes(data []byte) (*Manifest, error) {
	return parseManifest("m", bytes.NewReader(data), int64(len(data)), allRecords)
}

func newManifestFS(t *testing.T) (*vfs.Mem, *manifestWriter) {
	files := vfs.NewMem()
	require.NoError(t, files.MkdirAll("/db"))
	return files, &manifestWriter{files: files, dir: "/db", header: testHeader}
}

func TestManifestRoundTrip(t *testing.T) {
	files, w := newManifestFS(t)
	require.NoError(t, w.begin(nil))
	var kept []Checkpoint
	for n := uint64(1); n <= 5; n++ {
		c := testCheckpoint(n)
		require.NoError(t, w.publish(&c, kept))
		kept = append(kept, c)
		m, err := readManifest(files, "/db", allRecords)
		require.NoError(t, err)
		require.Equal(t, testHeader, m.Header)
		require.Equal(t, kept, m.Checkpoints)
		require.False(t, m.Torn)
	}
	require.NoError(t, w.close())

	next := &manifestWriter{files: files, dir: "/db", header: testHeader, number: w.number}
	c := testCheckpoint(6)
	require.NoError(t, next.publish(&c, kept[3:]))
	m, err := readManifest(files, "/db", allRecords)
	require.NoError(t, err)
	require.EqualValues(t, w.number+1, m.Number)
	require.Equal(t, []Checkpoint{kept[3], kept[4], c}, m.Checkpoints)
	require.NoError(t, next.close())
}

// TestManifestCut: a manifest cut anywhere shows a prefix of its checkpoints.
func TestManifestCut(t *testing.T) {
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(t, err)
	headerEnd := len(data)
	var ends []int
	for n := uint64(1); n <= 3; n++ {
		data, err = AppendRecord(data, n, testCheckpoint(n))
		require.NoError(t, err)
		ends = append(ends, len(data))
	}
	for cut := range len(data) {
		m, err := parseBytes(data[:cut])
		if cut < headerEnd {
			require.ErrorIs(t, err, fault.ErrCorrupt)
			continue
		}
		require.NoError(t, err)
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		require.Len(t, m.Checkpoints, whole)
		require.Equal(t, cut != headerEnd && (whole == 0 || ends[whole-1] != cut), m.Torn)
	}
}

// TestManifestHole: a checkpoint behind a damaged record serves.
func TestManifestHole(t *testing.T) {
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(t, err)
	var ends []int
	for n := uint64(1); n <= 3; n++ {
		data, err = AppendRecord(data, n, testCheckpoint(n))
		require.NoError(t, err)
		ends = append(ends, len(data))
	}
	for at := ends[0]; at < ends[1]; at++ {
		harmed := bytes.Clone(data)
		harmed[at] ^= 0x55
		m, err := parseManifest("m", bytes.NewReader(harmed), int64(len(harmed)), allRecords)
		require.NoError(t, err)
		require.Equal(t, []Checkpoint{testCheckpoint(1), testCheckpoint(3)}, m.Checkpoints, at)
		require.Equal(t, 1, m.Holes)
		require.False(t, m.Torn)
		r := readRemains("m", harmed)
		require.Equal(t, m.Checkpoints, r.Checkpoints)
		require.Len(t, r.Flaws, 1)
		require.EqualValues(t, ends[0], r.Flaws[0].Offset)
		require.EqualValues(t, ends[1]-ends[0], r.Flaws[0].Length)
	}
}

// TestManifestOfMagic: bytes made to look like records do not take long.
func TestManifestOfMagic(t *testing.T) {
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(t, err)
	fake := []byte("RKMF\x00\x00\x10\x00\xff\xff\xff\xff")
	data = append(data, bytes.Repeat(fake, 4<<20/len(fake))...)
	m, err := parseManifest("m", bytes.NewReader(data), int64(len(data)), allRecords)
	require.NoError(t, err)
	require.True(t, m.Torn)
}

// TestManifestFlip: no flipped bit is believed.
func TestManifestFlip(t *testing.T) {
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(t, err)
	data, err = AppendRecord(data, 1, testCheckpoint(1))
	require.NoError(t, err)
	for i := range data {
		for bit := range 8 {
			harmed := bytes.Clone(data)
			harmed[i] ^= 1 << bit
			if m, err := parseBytes(harmed); err == nil {
				require.Equal(t, testHeader, m.Header)
				require.Empty(t, m.Checkpoints)
				require.True(t, m.Torn)
			}
		}
	}
}

// TestManifestPowerCut cuts the power before every operation of publishing: the
// manifest then shows the checkpoints published so far, or one more.
func TestManifestPowerCut(t *testing.T) {
	files, w := newManifestFS(t)
	require.NoError(t, files.SyncDir("/"))
	require.NoError(t, w.begin(nil))
	published := 0
	files.OnOp(func(n int, _ vfs.Op) error {
		for _, mode := range []vfs.CrashMode{vfs.Strict, vfs.Keep} {
			m, err := readManifest(files.CrashClone(nil, mode), "/db", allRecords)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(m.Checkpoints), published)
			require.LessOrEqual(t, len(m.Checkpoints), published+1)
		}
		return nil
	})
	var kept []Checkpoint
	for n := uint64(1); n <= 4; n++ {
		if n == 3 {
			require.NoError(t, w.close()) // the next one begins a new file
		}
		c := testCheckpoint(n)
		require.NoError(t, w.publish(&c, kept))
		kept = append(kept, c)
		published++
	}
	files.OnOp(nil)
	require.NoError(t, w.close())
}

// TestManifestFault fails every operation of publishing once: the error is
// reported, and the next publication works.
func TestManifestFault(t *testing.T) {
	broken := errors.New("broken")
	for nth := 1; ; nth++ {
		files, w := newManifestFS(t)
		require.NoError(t, w.begin(nil))
		base, hit := files.Ops(), false
		files.OnOp(func(n int, _ vfs.Op) error {
			if n == base+nth {
				hit = true
				return broken
			}
			return nil
		})
		var kept []Checkpoint
		for n := uint64(1); n <= 3; n++ {
			c := testCheckpoint(n)
			before := hit
			err := w.publish(&c, kept)
			require.Equal(t, hit && !before, err != nil, "operation %d, checkpoint %d: %v", nth, n, err)
			if err == nil {
				kept = append(kept, c)
			}
			if n == 1 {
				w.close()
			}
		}
		m, err := readManifest(files, "/db", allRecords)
		require.NoError(t, err)
		require.Contains(t, m.Checkpoints, kept[len(kept)-1]) // a failed one may follow it
		if !hit {
			return
		}
	}
}

func TestManifestRefuses(t *testing.T) {
	future, wrong := testHeader, testHeader
	future.Format++
	wrong.SegmentBytes = 12345
	for name, c := range map[string]struct {
		body any
		want error
	}{
		"future format": {future, fault.ErrFormat},
		"geometry":      {wrong, fault.ErrCorrupt},
	} {
		data, err := AppendRecord(nil, 0, c.body)
		require.NoError(t, err)
		_, err = parseBytes(data)
		require.ErrorIs(t, err, c.want, name)
	}
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(t, err)
	data, err = AppendRecord(data, 1, map[string]any{"checkpoint": 1, "unheard_of": true})
	require.NoError(t, err)
	_, err = parseBytes(data)
	require.ErrorIs(t, err, fault.ErrCorrupt)
}

// TestManifestRefusesUnsoundRecords: a right checksum proves nothing about the
// one who wrote the record.
func TestManifestRefusesUnsoundRecords(t *testing.T) {
	file := func(name string) func(c *Checkpoint) {
		return func(c *Checkpoint) { c.Tables[0].Files[0] = name }
	}
	for name, spoil := range map[string]func(c *Checkpoint){
		"number":                   func(c *Checkpoint) { c.Number = 0 },
		"number too large":         func(c *Checkpoint) { c.Number = maxNumber + 1 },
		"CTS":                      func(c *Checkpoint) { c.CTS = logstream.MaxCTS + 1 },
		"round":                    func(c *Checkpoint) { c.Round = logstream.MaxCTS + 1 },
		"too few positions":        func(c *Checkpoint) { c.Replay = c.Replay[:1] },
		"too many positions":       func(c *Checkpoint) { c.Ends = append(c.Ends, 0) },
		"no positions":             func(c *Checkpoint) { c.Replay, c.Ends = nil, nil },
		"replay behind the end":    func(c *Checkpoint) { c.Replay[0] = c.Ends[0] + 8 },
		"position":                 func(c *Checkpoint) { c.Ends[0] = logstream.MaxPosition + 1 },
		"stream of live bytes":     func(c *Checkpoint) { c.Live[0].Stream = 2 },
		"negative stream":          func(c *Checkpoint) { c.Live[0].Stream = -1 },
		"segment of live bytes":    func(c *Checkpoint) { c.Live[0].First++ },
		"negative live bytes":      func(c *Checkpoint) { c.Live[0].Bytes = -1 },
		"table twice":              func(c *Checkpoint) { c.Tables = append(c.Tables, c.Tables[0]) },
		"generation to come":       func(c *Checkpoint) { c.Tables[0].Generation.Number = c.Number + 1 },
		"negative index":           func(c *Checkpoint) { c.Indexes = []IndexFiles{{Index: -1}} },
		"file of the index":        func(c *Checkpoint) { c.Indexes = []IndexFiles{{Files: []index.FileInfo{{Name: "/etc/passwd"}}}} },
		"suspects":                 func(c *Checkpoint) { c.Suspects = &FileInfo{Name: "ckpt/../../suspects"} },
		"file above":               file("ckpt/../../x"),
		"absolute file":            file("/ckpt/x"),
		"file elsewhere":           file("log/x"),
		"CURRENT":                  file("CURRENT"),
		"directory":                file("ckpt"),
		"Windows":                  file(`ckpt/..\..\x`),
		"drive":                    file("ckpt/c:x"),
		"NUL":                      file("ckpt/x\x00"),
		"not in its shortest form": file("ckpt/./x"),
	} {
		c := testCheckpoint(2)
		spoil(&c)
		data, err := AppendRecord(nil, 0, testHeader)
		require.NoError(t, err)
		data, err = AppendRecord(data, 1, testCheckpoint(1))
		require.NoError(t, err)
		data, err = AppendRecord(data, 2, c)
		require.NoError(t, err)
		_, err = parseBytes(data)
		require.ErrorIs(t, err, fault.ErrCorrupt, name)
		require.ErrorContains(t, err, "manifest record 2", name)
	}
}

// TestUnfinishedRecord: what a power cut leaves of the last record is told from
// damage to a whole one.
func TestUnfinishedRecord(t *testing.T) {
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(t, err)
	start := len(data)
	c := testCheckpoint(1)
	for range 30 {
		c.Tables[0].Files = append(c.Tables[0].Files, c.Tables[0].Files[0])
	}
	data, err = AppendRecord(data, 1, c)
	require.NoError(t, err)
	judge := func(data []byte) bool {
		flaws := readRemains("m", data).Flaws
		require.Len(t, flaws, 1)
		m, err := parseManifest("m", bytes.NewReader(data), int64(len(data)), allRecords)
		require.NoError(t, err)
		return m.Unfinished
	}
	for at := start + 1; at < len(data); at++ {
		require.True(t, judge(data[:at]), "cut at %d", at)
	}
	for sector := start - start%512 + 512; sector < len(data); sector += 512 {
		torn := bytes.Clone(data)
		clear(torn[sector:min(sector+512, len(data))])
		require.True(t, judge(torn), "without the sector at %d", sector)
	}
	for bit := 8 * start; bit < 8*len(data); bit++ {
		flipped := bytes.Clone(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		require.False(t, judge(flipped), "bit %d", bit)
	}
	require.False(t, judge(slices.Insert(bytes.Clone(data), start, make([]byte, 600)...)), "damage before a sound record")
}

func FuzzManifest(f *testing.F) {
	data, err := AppendRecord(nil, 0, testHeader)
	require.NoError(f, err)
	f.Add(data)
	data, err = AppendRecord(data, 1, testCheckpoint(1))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m *Manifest
		var err error
		alloctest.Bound(t, 64<<10, 200, len(data), func() { m, err = parseBytes(data) })
		if err != nil {
			require.True(t, errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrFormat), "%v", err)
			return
		}
		again, err := AppendRecord(nil, 0, m.Header)
		require.NoError(t, err)
		for i := range m.Checkpoints {
			again, err = AppendRecord(again, uint64(i+1), m.Checkpoints[i])
			require.NoError(t, err)
		}
		m2, err := parseBytes(again)
		require.NoError(t, err)
		require.Equal(t, m.Header, m2.Header)
		require.Equal(t, m.Checkpoints, m2.Checkpoints)
	})
}

func suspectsFile(n int) []byte {
	var list suspectList
	for i := range n {
		list.add(txn.Garbage{Row: rowid.Make(2, uint64(i+1)), Index: uint8(i), Key: fmt.Append(nil, "key", i)})
	}
	return list.finish(testHeader.DatabaseID)
}

func TestSuspects(t *testing.T) {
	data := suspectsFile(5)
	var got []txn.Garbage
	require.NoError(t, parseSuspects("s", data, testHeader.DatabaseID, func(g txn.Garbage) { got = append(got, g) }))
	require.Len(t, got, 5)
	require.Equal(t, txn.Garbage{Row: rowid.Make(2, 4), Kind: txn.GarbageSuspect, Index: 3, Key: []byte("key3")}, got[3])
	require.ErrorIs(t, parseSuspects("s", data, ID{9}, func(txn.Garbage) {}), fault.ErrForeignFile)
	for i := range data {
		harmed := bytes.Clone(data)
		harmed[i] ^= 0x10
		require.Error(t, parseSuspects("s", harmed, testHeader.DatabaseID, func(txn.Garbage) { t.Fatal("believed") }))
		require.Error(t, parseSuspects("s", data[:i], testHeader.DatabaseID, func(txn.Garbage) { t.Fatal("believed") }))
	}
}

func FuzzSuspects(f *testing.F) {
	f.Add(suspectsFile(1))
	f.Add(suspectsFile(3))
	f.Fuzz(func(t *testing.T, data []byte) {
		alloctest.Bound(t, 64<<10, 1, len(data), func() {
			_ = parseSuspects("s", data, testHeader.DatabaseID, func(txn.Garbage) {})
		})
		var list suspectList
		if parseSuspects("s", data, testHeader.DatabaseID, list.add) == nil && list.count > 0 {
			require.Equal(t, data, list.finish(testHeader.DatabaseID))
		}
	})
}
