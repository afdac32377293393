package iacow

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// goldenRig has two checkpoints: a root with some leaves and an overflow page; then
// one of the leaves changed.
func goldenRig(t testing.TB) *rig {
	r := newRig(t)
	salt := uint64(0x5a17)
	r.x.salt = func() uint64 { salt++; return salt }
	for i := range uint64(400) {
		r.insert(pair{integer(i * 10), rowid.Make(testTable, i+1)})
	}
	r.insert(pair{strings.Repeat("long ", 80), rowid.Make(testTable, 1000)})
	r.publish()
	r.insert(pair{integer(55), rowid.Make(testTable, 1001)})
	r.remove(pair{integer(10), rowid.Make(testTable, 2)})
	r.publish()
	return r
}

func goldenName(n int) string { return fmt.Sprintf("testdata/iacow_v%d.%d.txt", formatVersion, n) }

// The bytes of the format, explained; docs/format/iacow.md describes them.
func TestGoldenFiles(t *testing.T) {
	r := goldenRig(t)
	for n, info := range []index.FileInfo{r.kept[1].files[1], r.kept[1].files[0]} {
		got := describeFile(t, r.content(info.Name))
		if *rewrite {
			require.NoError(t, os.WriteFile(goldenName(n+1), []byte(got), 0o644))
		}
		want, err := os.ReadFile(goldenName(n + 1))
		require.NoError(t, err)
		requireLines(t, string(want), got)
	}
}

// requireLines shows the first line that differs.
func requireLines(t testing.TB, want, got string) {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		require.Equal(t, wants[i], gots[i], "line %d", i+1)
	}
	require.Equal(t, len(wants), len(gots))
}

// Files that were written by the first release of version 1 can be read.
func TestGoldenFilesAreReadable(t *testing.T) {
	r := goldenRig(t)
	fs := vfs.NewMem()
	files := r.kept[1].files
	require.NoError(t, fs.MkdirAll("/db"))
	for n, info := range []index.FileInfo{files[1], files[0]} {
		text, err := os.ReadFile(fmt.Sprintf("testdata/iacow_v1.%d.txt", n+1))
		require.NoError(t, err)
		require.NoError(t, vfs.WriteFileAtomic(fs, info.Name, parseDescription(t, string(text))))
	}
	r.spec.FS = fs
	x := r.open(files)
	require.NoError(t, x.validate())
	r.equals(x, r.model)
	require.NoError(t, x.Close())
	require.NoError(t, r.verifyAll(files))
}

// describer writes lines "offset  bytes  # meaning".
type describer struct {
	strings.Builder
	b  []byte
	at int
}

func (d *describer) field(n int, format string, args ...any) {
	bytes := d.b[d.at : d.at+n]
	text := hex.EncodeToString(bytes)
	if n > 16 && strings.Trim(text, "0") == "" {
		text = fmt.Sprintf("00 x %d", n)
	}
	fmt.Fprintf(d, "%06x  %s  # %s\n", d.at, text, fmt.Sprintf(format, args...))
	d.at += n
}

func (d *describer) title(format string, args ...any) { fmt.Fprintf(d, "# "+format+"\n", args...) }

func (d *describer) u64() uint64 { return binary.LittleEndian.Uint64(d.b[d.at:]) }

func describeFile(t testing.TB, b []byte) string {
	d := &describer{b: b}
	h, err := decodeHeader("golden", b)
	require.NoError(t, err)
	f, err := decodeFooter("golden", b[len(b)-footerBytes:], int64(len(b)), &h)
	require.NoError(t, err)
	d.header(&h)
	for range f.places[f.own].nodes {
		d.node()
	}
	for uint64(d.at) < f.directory {
		d.page()
	}
	for range chunksFor(f.pages) {
		d.chunk()
	}
	d.footer()
	require.Equal(t, len(b), d.at)
	return d.String()
}

func (d *describer) header(h *header) {
	d.field(8, "magic")
	d.field(4, "format version %d", formatVersion)
	d.field(2, "table %d", h.table)
	d.field(2, "index %d", h.index)
	d.field(16, "database id")
	d.field(8, "checkpoint %d", h.checkpoint)
	d.field(8, "salt")
	d.field(8, "checksum")
	d.field(blockBytes-headerFields, "zeros")
}

func (d *describer) node() {
	meta := binary.LittleEndian.Uint64(d.b[d.at+8:])
	count, level := int(meta&255), int(meta>>37&63)
	d.title("block %d: level %d, %d entries", d.at/blockBytes, level, count)
	end := d.at + blockBytes
	d.field(8, "checksum")
	d.field(8, "meta: room %d, prefix %d, heap from word %d, key length %d", meta>>8&255, meta>>16&255, meta>>24&511, meta>>33&15)
	d.field(8, "link to node %d", d.u64())
	d.field(8, "node %d", d.u64())
	d.field(8, "epoch %d", d.u64())
	for d.at < end { // runs of zeros together
		zeros := 0
		for d.at+zeros < end && binary.LittleEndian.Uint64(d.b[d.at+zeros:]) == 0 {
			zeros += 8
		}
		d.field(max(zeros, 8), "content")
	}
}

func (d *describer) page() {
	d.title("table page in block %d", d.at/blockBytes)
	for i := 0; i < pageIDs; {
		empty := 0
		for i+empty < pageIDs && binary.LittleEndian.Uint64(d.b[d.at+8*empty:]) == 0 {
			empty++
		}
		if empty > 0 {
			d.field(8*empty, "ids %d-%d: no node", i, i+empty-1)
			i += empty
			continue
		}
		d.field(8, "id %d: %v", i, entry(d.u64()))
		i++
	}
}

func (d *describer) chunk() {
	d.title("directory chunk")
	d.field(8, "checksum")
	end := d.at + chunkBytes - 8
	for d.at < end {
		r := decodePageRef(d.b[d.at:])
		if r.block == 0 {
			d.field(end-d.at, "no pages")
			return
		}
		d.field(4, "page in block %d", r.block)
		d.field(2, "%d ids in use", r.live)
		d.field(1, "place %d", r.place)
		d.field(1, "zero")
		d.field(8, "checksum")
	}
}

func (d *describer) footer() {
	d.title("footer")
	d.field(8, "magic")
	for _, name := range []string{"file size", "epoch", "root is node", "next id", "entries", "nodes", "table pages", "directory offset", "own place"} {
		d.field(8, "%s %d", name, d.u64())
	}
	for place := range placeCount {
		if binary.LittleEndian.Uint64(d.b[d.at+8:]) == 0 {
			d.field(placeBytes, "place %d: not used", place)
			continue
		}
		d.field(8, "place %d: checkpoint %d", place, d.u64())
		d.field(8, "file size %d", d.u64())
		d.field(8, "checksum of the file")
		d.field(8, "salt")
		d.field(8, "%d nodes in the file", d.u64())
		d.field(4, "%d of them live", uint32(d.u64()))
		d.field(4, "%d live table pages", uint32(d.u64()))
	}
	d.field(8, "checksum")
}

// parseDescription turns a description back into bytes.
func parseDescription(t testing.TB, text string) (b []byte) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		content, _, _ := strings.Cut(line[8:], "  #")
		if zeros, ok := strings.CutPrefix(content, "00 x "); ok {
			n, err := strconv.Atoi(zeros)
			require.NoError(t, err)
			b = append(b, make([]byte, n)...)
			continue
		}
		part, err := hex.DecodeString(content)
		require.NoError(t, err)
		b = append(b, part...)
	}
	return b
}
