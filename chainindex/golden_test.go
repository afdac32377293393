package chainindex

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
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
		got := describeFile(r, info)
		if *rewrite {
			require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), got)
	}
}

// Files that were written by the first release of version 1 can be read.
func TestGoldenFilesAreReadable(t *testing.T) {
	files, m := goldenChain(newRigOn(t, vfs.NewMem(), "/"))
	r := newRigOn(t, vfs.NewMem(), "/")
	for n, info := range files {
		text, err := os.ReadFile(fmt.Sprintf("testdata/chain_v1.%d.txt", n+1))
		require.NoError(t, err)
		require.NoError(t, vfs.WriteFileAtomic(r.fs, info.Name, parseDescription(t, string(text))))
	}
	x := r.open(files)
	r.session(x).equals(m)
	require.NoError(t, verifyAll(x))
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

func (d *describer) word() uint64 { return binary.LittleEndian.Uint64(d.b[d.at:]) }

func describeFile(r *rig, info index.FileInfo) string {
	d := &describer{b: r.read(info.Name)}
	id := identityOf(&r.spec, info.Checkpoint)
	require.NoError(r.t, id.checkHeader(info.Name, d.b))
	f, err := decodeFooter(info.Name, d.b[len(d.b)-footerSize:], id.seed(partFooter), info.Size)
	require.NoError(r.t, err)
	d.field(8, "magic")
	d.field(4, "format version %d", formatVersion)
	d.field(2, "table %d", id.table)
	d.field(2, "index %d", id.number)
	d.field(16, "database id")
	d.field(8, "checkpoint %d", id.checkpoint)
	d.field(8, "checksum")
	d.field(headerSize-headerFields, "zeros")
	for range f.nodes {
		d.node()
	}
	d.field(8, "magic")
	d.field(8, "file size %d", d.word())
	d.field(8, "nodes: %d", d.word())
	d.field(8, "entries: %d", d.word())
	d.field(8, "tombstones: %d", d.word())
	d.field(8, "older file: checkpoint %d", d.word())
	d.field(8, "checksum of the older file")
	d.field(8, "checksum")
	require.Equal(r.t, len(d.b), d.at)
	return d.String()
}

func (d *describer) node() {
	end := d.at + nodeSize
	meta := binary.LittleEndian.Uint64(d.b[d.at+8:])
	count, room, prefix := int(meta&255), int(meta>>8&255), int(meta>>16&255)
	level, length := meta>>37&63, meta>>33&15
	fmt.Fprintf(d, "# node, level %d, %d entries\n", level, count)
	d.field(8, "checksum")
	d.field(8, "room %d, prefix %d, heap from word %d, key length %d", room, prefix, meta>>24&511, length)
	d.field(8, "link to node %d", d.word())
	d.field(8, "node %d", d.word())
	d.field(8, "zero")
	if level != 63 {
		if prefix > 0 {
			d.field((prefix+7)/8*8, "prefix")
		}
		d.words(room, count, "head")
		d.words(room, count, map[bool]string{true: "place", false: "child"}[level == 0])
	}
	for d.at < end { // slots and heap; runs of zeros together
		zeros := 0
		for d.at+zeros < end && binary.LittleEndian.Uint64(d.b[d.at+zeros:]) == 0 {
			zeros += 8
		}
		d.field(max(zeros, 8), "content")
	}
}

// words describes an array with room for more than its entries.
func (d *describer) words(room, count int, what string) {
	for i := range count {
		switch w := d.word(); {
		case what == "place" && w&tombstone != 0:
			d.field(8, "place %d: tombstone of row %d", i, w>>1)
		case what == "place":
			d.field(8, "place %d: row %d", i, w>>1)
		case what == "child":
			d.field(8, "child %d: node %d", i, w)
		default:
			d.field(8, "head %d: %016x", i, w)
		}
	}
	if room > count {
		d.field(8*(room-count), "free")
	}
}

// parseDescription makes bytes of a description.
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
