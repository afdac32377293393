package indirection

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		got := describeFile(t, readFile(t, s.fs, s.path(gen+1)))
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
	s := goldenSeries(t)
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("/db"))
	for gen := range uint64(2) {
		text, err := os.ReadFile(fmt.Sprintf("testdata/array_v1.%d.txt", gen+1))
		require.NoError(t, err)
		require.NoError(t, vfs.WriteFileAtomic(fs, s.path(gen+1), parseDescription(t, string(text))))
	}
	im, err := OpenImage(fs, s.image.newest, s.path, testID)
	require.NoError(t, err)
	s.check(t, im)
	require.NoError(t, im.Verify(t.Context()))
	require.NoError(t, im.Close())
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
	line := fmt.Sprintf("%06x  %s  # %s", d.at, text, fmt.Sprintf(format, args...))
	d.WriteString(line + "\n")
	d.at += n
}

func (d *describer) u64() uint64 { return word64(d.b[d.at:]) }

func word64(b []byte) uint64 { return uint64(word(b, 0)) }

func describeFile(t testing.TB, b []byte) string {
	d := &describer{b: b}
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
	d.field(8, "magic")
	d.field(4, "format version %d", formatVersion)
	d.field(2, "table %d", h.table)
	d.field(2, "zero")
	d.field(16, "database id")
	d.field(8, "generation %d", h.generation)
	d.field(8, "checksum")
	d.field(headerBytes-headerFields, "zeros")
}

func (d *describer) pages(end uint64) {
	for uint64(d.at) < end {
		d.WriteString(fmt.Sprintf("# page, block %d\n", d.at/pageBytes))
		d.words(PageSlots)
	}
}

// words describes n words, runs of zeros together.
func (d *describer) words(n int) {
	for slot := 0; slot < n; {
		zeros := 0
		for slot+zeros < n && word64(d.b[d.at+zeros*wordBytes:]) == 0 {
			zeros++
		}
		if zeros > 0 {
			d.field(zeros*wordBytes, "slots %d-%d: empty", slot, slot+zeros-1)
			slot += zeros
			continue
		}
		d.field(wordBytes, "slot %d: %v", slot, Word(d.u64()))
		slot++
	}
}

func (d *describer) patches(end uint64) {
	for start := d.at; uint64(d.at) < end; {
		d.WriteString(fmt.Sprintf("# patch %d\n", (d.at-start)/wordBytes+1))
		n := int(d.b[d.at+4])
		d.field(4, "checksum")
		d.field(2, "%d slots", n)
		d.field(2, "zero")
		for range n {
			d.field(wordBytes, "%v", Word(d.u64()))
		}
		for range n {
			d.field(2, "slot %d", int(d.b[d.at])|int(d.b[d.at+1])<<8)
		}
		if pad := patchSize(n) - patchHeader - n*(wordBytes+2); pad > 0 {
			d.field(pad, "padding")
		}
	}
}

func (d *describer) chunk(pia uint64) {
	d.WriteString(fmt.Sprintf("# directory chunk of PIA %d\n", pia))
	d.field(8, "checksum")
	for page := 0; page < piaPages; {
		empty := 0
		for page+empty < piaPages && decodeEntry(d.b[d.at+empty*pageEntryBytes:]).empty() {
			empty++
		}
		if empty > 0 {
			d.field(empty*pageEntryBytes, "%d pages without rows", empty)
			page += empty
			continue
		}
		e := decodeEntry(d.b[d.at:])
		d.field(4, "page %d: base in block %d", pia*piaPages+uint64(page), e.base)
		d.field(4, "patch %d", e.patch)
		d.field(4, "checksum")
		d.field(4, "%d rows, %d patched, base in place %d, patch in place %d", e.live, e.patched, e.basePlace, e.patchPlace)
		page++
	}
}

func (d *describer) footer() {
	d.WriteString("# footer\n")
	d.field(8, "magic")
	for _, name := range []string{"file size", "high-water mark", "first PIA", "directory chunks", "directory offset", "own place"} {
		d.field(8, "%s %d", name, d.u64())
	}
	for place := range placeCount {
		if d.u64() == 0 {
			d.field(placeBytes, "place %d: not used", place)
			continue
		}
		d.field(8, "place %d: generation %d", place, d.u64())
		d.field(8, "file size %d", d.u64())
		d.field(8, "checksum of the file")
		for _, name := range []string{"patches from offset", "pages with base here:", "pages with patch here:"} {
			d.field(8, "%s %d", name, d.u64())
		}
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
