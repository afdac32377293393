package indirection

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/goldentest"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// goldenSeries has a whole page, a page that is only a patch and one that loses
// all rows; then patches of both kinds.
func goldenSeries(t testing.TB) *series {
	s := newSeries(t, vfs.NewMem(), "/db")
	changes := map[uint64]Word{2<<pageShift + 1: logWord(77), 1<<piaShift + 511: logWord(78)}
	for slot := range uint64(65) {
		changes[1+slot*7] = logWord(slot)
	}
	s.step(t, changes)
	s.step(t, map[uint64]Word{1: 0, 2: logWord(100), 2<<pageShift + 1: 0, 1<<piaShift + 4: logWord(101)})
	return s
}

// The bytes of the format, explained; docs/format/array.md describes them.
func TestGoldenFiles(t *testing.T) {
	s := goldenSeries(t)
	for gen := range uint64(2) {
		name := fmt.Sprintf("testdata/array_v%d.%d.txt", formatVersion, gen+1)
		goldentest.Compare(t, name, describeFile(t, readFile(t, s.fs, s.path(gen+1))), *rewrite)
	}
}

// Files that were written by the first release of version 1 can be read.
func TestGoldenFilesAreReadable(t *testing.T) {
	s := goldenSeries(t)
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("/db"))
	for gen := range uint64(2) {
		text := goldentest.Read(t, fmt.Sprintf("testdata/array_v1.%d.txt", gen+1))
		require.NoError(t, vfs.WriteFileAtomic(fs, s.path(gen+1), goldentest.Parse(t, text)))
	}
	im, err := OpenImage(fs, s.image.newest, s.path, testID)
	require.NoError(t, err)
	s.check(t, im)
	require.NoError(t, im.Verify(t.Context()))
	require.NoError(t, im.Close())
}

type describer struct{ goldentest.Describer }

func word64(b []byte) uint64 { return uint64(word(b, 0)) }

func describeFile(t testing.TB, b []byte) string {
	d := &describer{goldentest.Describer{Bytes: b}}
	h, err := decodeHeader("golden", b)
	require.NoError(t, err)
	f, err := decodeFooter("golden", b[len(b)-footerBytes:], int64(len(b)), newHasher(h.id, h.table), h.generation)
	require.NoError(t, err)
	d.header(h)
	d.pages(f.places[f.own].patches)
	d.patches(f.directory)
	for pia := range f.pias {
		d.chunk(f.firstPIA + pia)
	}
	d.footer()
	return d.String()
}

func (d *describer) header(h header) {
	d.Field(8, "magic")
	d.Field(4, "format version %d", formatVersion)
	d.Field(2, "table %d", h.table)
	d.Field(2, "zero")
	d.Field(16, "database id")
	d.Field(8, "generation %d", h.generation)
	d.Field(8, "checksum")
	d.Field(headerBytes-headerFields, "zeros")
}

func (d *describer) pages(end uint64) {
	for uint64(d.At) < end {
		d.Title("page, block %d", d.At/pageBytes)
		d.words(PageSlots)
	}
}

// words describes n words, runs of zeros together.
func (d *describer) words(n int) {
	for slot := 0; slot < n; {
		zeros := 0
		for slot+zeros < n && word64(d.Bytes[d.At+zeros*wordBytes:]) == 0 {
			zeros++
		}
		if zeros > 0 {
			d.Field(zeros*wordBytes, "slots %d-%d: empty", slot, slot+zeros-1)
			slot += zeros
			continue
		}
		d.Field(wordBytes, "slot %d: %v", slot, Word(d.Uint64()))
		slot++
	}
}

func (d *describer) patches(end uint64) {
	for start := d.At; uint64(d.At) < end; {
		d.Title("patch %d", (d.At-start)/wordBytes+1)
		n := int(d.Bytes[d.At+4])
		d.Field(4, "checksum")
		d.Field(2, "%d slots", n)
		d.Field(2, "zero")
		for range n {
			d.Field(wordBytes, "%v", Word(d.Uint64()))
		}
		for range n {
			d.Field(2, "slot %d", int(d.Bytes[d.At])|int(d.Bytes[d.At+1])<<8)
		}
		if pad := patchSize(n) - patchHeader - n*(wordBytes+2); pad > 0 {
			d.Field(pad, "padding")
		}
	}
}

func (d *describer) chunk(pia uint64) {
	d.Title("directory chunk of PIA %d", pia)
	d.Field(8, "checksum")
	for page := 0; page < piaPages; {
		empty := 0
		for page+empty < piaPages && decodeEntry(d.Bytes[d.At+empty*pageEntryBytes:]).empty() {
			empty++
		}
		if empty > 0 {
			d.Field(empty*pageEntryBytes, "%d pages without rows", empty)
			page += empty
			continue
		}
		e := decodeEntry(d.Bytes[d.At:])
		d.Field(4, "page %d: base in block %d", pia*piaPages+uint64(page), e.base)
		d.Field(4, "patch %d", e.patch)
		d.Field(4, "checksum")
		d.Field(4, "%d rows, %d patched, base in place %d, patch in place %d", e.live, e.patched, e.basePlace, e.patchPlace)
		page++
	}
}

func (d *describer) footer() {
	d.Title("footer")
	d.Field(8, "magic")
	for _, name := range []string{"file size", "high-water mark", "first PIA", "directory chunks", "directory offset", "own place"} {
		d.Field(8, "%s %d", name, d.Uint64())
	}
	for place := range placeCount {
		if d.Uint64() == 0 {
			d.Field(placeBytes, "place %d: not used", place)
			continue
		}
		d.Field(8, "place %d: generation %d", place, d.Uint64())
		d.Field(8, "file size %d", d.Uint64())
		d.Field(8, "checksum of the file")
		for _, name := range []string{"patches from offset", "pages with base here:", "pages with patch here:"} {
			d.Field(8, "%s %d", name, d.Uint64())
		}
	}
	d.Field(8, "checksum")
}
