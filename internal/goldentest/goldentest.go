// Package goldentest keeps files of tests that say what the bytes of a format are
// and mean: a line for each field, with offset, bytes and meaning.
package goldentest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// maxBytes is more than any golden file has.
const maxBytes = 16 << 20

// Read returns a golden file.
func Read(t testing.TB, name string) string {
	t.Helper()
	text, err := vfs.ReadFile(vfs.OS(), name, maxBytes)
	require.NoError(t, err)
	return string(text)
}

// Compare fails at the first line in which got is not the golden file, which it
// writes first if that is wanted.
func Compare(t testing.TB, name, got string, rewrite bool) {
	t.Helper()
	if rewrite {
		require.NoError(t, vfs.WriteFileAtomic(vfs.OS(), name, []byte(got)))
	}
	wants, gots := strings.Split(Read(t, name), "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		require.Equal(t, wants[i], gots[i], "%s, line %d: run with -rewrite if the change is meant", name, i+1)
	}
	require.Equal(t, len(wants), len(gots), "lines of %s", name)
}

// Describer writes a description of Bytes, field by field.
type Describer struct {
	strings.Builder
	Bytes []byte
	At    int // where the next field begins
}

// Title writes a line of its own for the fields that follow.
func (d *Describer) Title(format string, args ...any) { fmt.Fprintf(d, "# "+format+"\n", args...) }

// Field writes a line for the next n bytes.
func (d *Describer) Field(n int, format string, args ...any) {
	text := hex.EncodeToString(d.Bytes[d.At : d.At+n])
	if n > 16 && strings.Trim(text, "0") == "" {
		text = fmt.Sprintf("%s%d", zeros, n)
	}
	fmt.Fprintf(d, "%06x  %s  # %s\n", d.At, text, fmt.Sprintf(format, args...))
	d.At += n
}

// zeros is what stands before the number of many bytes that are zero.
const zeros = "00 x "

// Uint64 returns the number in the next 8 bytes.
func (d *Describer) Uint64() uint64 { return binary.LittleEndian.Uint64(d.Bytes[d.At:]) }

// Words writes a line for each word before end, and one for each run of zeros.
func (d *Describer) Words(end int, meaning string) {
	for d.At < end {
		n := 0
		for d.At+n < end && binary.LittleEndian.Uint64(d.Bytes[d.At+n:]) == 0 {
			n += 8
		}
		d.Field(max(n, 8), "%s", meaning)
	}
}

// Parse turns a description back into bytes.
func Parse(t testing.TB, description string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(description) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		content, _, _ := strings.Cut(line[8:], "  #")
		if count, ok := strings.CutPrefix(content, zeros); ok {
			n, err := strconv.Atoi(count)
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
