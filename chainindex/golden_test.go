package chainindex

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/goldentest"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func integerKey(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// goldenChain has a file with a root over two leaves and an overflow page, and
// one over it with entries and a tombstone in its root. It is returned oldest
// first.
func goldenChain(r *rig) ([]index.FileInfo, *indextest.Model) {
	x, m := r.create(), &indextest.Model{}
	x.plan = lagging
	s := r.session(x)
	add := func(key string, n int) {
		m.Insert(indextest.Entry{Key: key, Row: row(n)})
		s.insert(key, n)
	}
	for i := range 130 {
		add(integerKey(uint64(i)*10), i+1)
	}
	add(strings.Repeat("long ", 80), 1000)
	r.checkpoint(x)
	add(integerKey(55), 1001)
	add("name", 1002)
	require.True(r.t, s.remove(integerKey(10), 2))
	m.Remove(indextest.Entry{Key: integerKey(10), Row: row(2)})
	files := r.checkpoint(x)
	slices.Reverse(files)
	return files, m
}

// The bytes of the format, explained; docs/format/chain.md describes them.
func TestGoldenFiles(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, _ := goldenChain(r)
	for n, info := range files {
		name := fmt.Sprintf("testdata/chain_v%d.%d.txt", formatVersion, n+1)
		goldentest.Compare(t, name, describeFile(r, info), *rewrite)
	}
}

// Files that were written by the first release of version 1 can be read.
func TestGoldenFilesAreReadable(t *testing.T) {
	files, m := goldenChain(newRigOn(t, vfs.NewMem(), "/"))
	r := newRigOn(t, vfs.NewMem(), "/")
	for n, info := range files {
		text := goldentest.Read(t, fmt.Sprintf("testdata/chain_v1.%d.txt", n+1))
		require.NoError(t, vfs.WriteFileAtomic(r.fs, info.Name, goldentest.Parse(t, text)))
	}
	x := r.open(files)
	r.session(x).equals(m)
	require.NoError(t, verifyAll(x))
}

type describer struct{ goldentest.Describer }

func describeFile(r *rig, info index.FileInfo) string {
	d := &describer{goldentest.Describer{Bytes: r.read(info.Name)}}
	id := identityOf(&r.spec, info.Checkpoint)
	require.NoError(r.t, id.checkHeader(info.Name, d.Bytes))
	f, err := decodeFooter(info.Name, d.Bytes[len(d.Bytes)-footerSize:], id.seed(partFooter), info.Size)
	require.NoError(r.t, err)
	d.Field(8, "magic")
	d.Field(4, "format version %d", formatVersion)
	d.Field(2, "table %d", id.table)
	d.Field(2, "index %d", id.number)
	d.Field(16, "database id")
	d.Field(8, "checkpoint %d", id.checkpoint)
	d.Field(8, "checksum")
	d.Field(headerSize-headerFields, "zeros")
	for range f.nodes {
		d.node()
	}
	d.Field(8, "magic")
	d.Field(8, "file size %d", d.Uint64())
	d.Field(8, "nodes: %d", d.Uint64())
	d.Field(8, "entries: %d", d.Uint64())
	d.Field(8, "tombstones: %d", d.Uint64())
	d.Field(8, "older file: checkpoint %d", d.Uint64())
	d.Field(8, "checksum of the older file")
	d.Field(8, "checksum")
	require.Equal(r.t, len(d.Bytes), d.At)
	return d.String()
}

func (d *describer) node() {
	end := d.At + nodeSize
	meta := binary.LittleEndian.Uint64(d.Bytes[d.At+8:])
	count, room, prefix := int(meta&255), int(meta>>8&255), int(meta>>16&255)
	level, length := meta>>37&63, meta>>33&15
	d.Title("node, level %d, %d entries", level, count)
	d.Field(8, "checksum")
	d.Field(8, "room %d, prefix %d, heap from word %d, key length %d", room, prefix, meta>>24&511, length)
	d.Field(8, "link to node %d", d.Uint64())
	d.Field(8, "node %d", d.Uint64())
	d.Field(8, "zero")
	if level != 63 {
		if prefix > 0 {
			d.Field((prefix+7)/8*8, "prefix")
		}
		d.words(room, count, "head")
		d.words(room, count, map[bool]string{true: "place", false: "child"}[level == 0])
	}
	d.Words(end, "content") // slots and heap
}

// words describes an array with room for more than its entries.
func (d *describer) words(room, count int, what string) {
	for i := range count {
		switch w := d.Uint64(); {
		case what == "place" && w&tombstone != 0:
			d.Field(8, "place %d: tombstone of row %d", i, w>>1)
		case what == "place":
			d.Field(8, "place %d: row %d", i, w>>1)
		case what == "child":
			d.Field(8, "child %d: node %d", i, w)
		default:
			d.Field(8, "head %d: %016x", i, w)
		}
	}
	if room > count {
		d.Field(8*(room-count), "free")
	}
}
