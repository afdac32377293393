package iacow

import (
	"encoding/binary"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/goldentest"
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
		goldentest.Compare(t, goldenName(n+1), describeFile(t, r.content(info.Name)), *rewrite)
	}
}

// Files that were written by the first release of version 1 can be read.
func TestGoldenFilesAreReadable(t *testing.T) {
	r := goldenRig(t)
	fs := vfs.NewMem()
	files := r.kept[1].files
	require.NoError(t, fs.MkdirAll("/db"))
	for n, info := range []index.FileInfo{files[1], files[0]} {
		text := goldentest.Read(t, fmt.Sprintf("testdata/iacow_v1.%d.txt", n+1))
		require.NoError(t, vfs.WriteFileAtomic(fs, info.Name, goldentest.Parse(t, text)))
	}
	r.spec.FS = fs
	x := r.open(files)
	require.NoError(t, x.validate())
	r.equals(x, r.model)
	require.NoError(t, x.Close())
	require.NoError(t, r.verifyAll(files))
}

type describer struct{ goldentest.Describer }

func describeFile(t testing.TB, b []byte) string {
	d := &describer{goldentest.Describer{Bytes: b}}
	h, err := decodeHeader("golden", b)
	require.NoError(t, err)
	f, err := decodeFooter("golden", b[len(b)-footerBytes:], int64(len(b)), &h)
	require.NoError(t, err)
	d.header(&h)
	for range f.places[f.own].nodes {
		d.node()
	}
	for uint64(d.At) < f.directory {
		d.page()
	}
	for range chunksFor(f.pages) {
		d.chunk()
	}
	d.footer()
	require.Equal(t, len(b), d.At)
	return d.String()
}

func (d *describer) header(h *header) {
	d.Field(8, "magic")
	d.Field(4, "format version %d", formatVersion)
	d.Field(2, "table %d", h.table)
	d.Field(2, "index %d", h.index)
	d.Field(16, "database id")
	d.Field(8, "checkpoint %d", h.checkpoint)
	d.Field(8, "salt")
	d.Field(8, "checksum")
	d.Field(blockBytes-headerFields, "zeros")
}

func (d *describer) node() {
	meta := binary.LittleEndian.Uint64(d.Bytes[d.At+8:])
	count, level := int(meta&255), int(meta>>37&63)
	d.Title("block %d: level %d, %d entries", d.At/blockBytes, level, count)
	end := d.At + blockBytes
	d.Field(8, "checksum")
	d.Field(8, "meta: room %d, prefix %d, heap from word %d, key length %d", meta>>8&255, meta>>16&255, meta>>24&511, meta>>33&15)
	d.Field(8, "link to node %d", d.Uint64())
	d.Field(8, "node %d", d.Uint64())
	d.Field(8, "epoch %d", d.Uint64())
	d.Words(end, "content")
}

func (d *describer) page() {
	d.Title("table page in block %d", d.At/blockBytes)
	for i := 0; i < pageIDs; {
		empty := 0
		for i+empty < pageIDs && binary.LittleEndian.Uint64(d.Bytes[d.At+8*empty:]) == 0 {
			empty++
		}
		if empty > 0 {
			d.Field(8*empty, "ids %d-%d: no node", i, i+empty-1)
			i += empty
			continue
		}
		d.Field(8, "id %d: %v", i, entry(d.Uint64()))
		i++
	}
}

func (d *describer) chunk() {
	d.Title("directory chunk")
	d.Field(8, "checksum")
	end := d.At + chunkBytes - 8
	for d.At < end {
		r := decodePageRef(d.Bytes[d.At:])
		if r.block == 0 {
			d.Field(end-d.At, "no pages")
			return
		}
		d.Field(4, "page in block %d", r.block)
		d.Field(2, "%d ids in use", r.live)
		d.Field(1, "place %d", r.place)
		d.Field(1, "zero")
		d.Field(8, "checksum")
	}
}

func (d *describer) footer() {
	d.Title("footer")
	d.Field(8, "magic")
	for _, name := range []string{"file size", "epoch", "root is node", "next id", "entries", "nodes", "table pages", "directory offset", "own place"} {
		d.Field(8, "%s %d", name, d.Uint64())
	}
	for place := range placeCount {
		if binary.LittleEndian.Uint64(d.Bytes[d.At+8:]) == 0 {
			d.Field(placeBytes, "place %d: not used", place)
			continue
		}
		d.Field(8, "place %d: checkpoint %d", place, d.Uint64())
		d.Field(8, "file size %d", d.Uint64())
		d.Field(8, "checksum of the file")
		d.Field(8, "salt")
		d.Field(8, "%d nodes in the file", d.Uint64())
		d.Field(4, "%d of them live", uint32(d.Uint64()))
		d.Field(4, "%d live table pages", uint32(d.Uint64()))
	}
	d.Field(8, "checksum")
}
