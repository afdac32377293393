package keyenc_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index/keyenc"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// TestGolden keeps the bytes of the key format fixed: keys are on disk.
func TestGolden(t *testing.T) {
	var out strings.Builder
	line := func(name string, key []byte) { fmt.Fprintf(&out, "%-36s % x\n", name, key) }
	line("NULL", keyenc.AppendNull(nil))
	line("present", keyenc.AppendPresent(nil))
	line("bool false", keyenc.AppendBool(nil, false))
	line("bool true", keyenc.AppendBool(nil, true))
	for _, width := range []int{1, 2, 4, 8} {
		line(fmt.Sprintf("int%d -2", 8*width), keyenc.AppendInt(nil, -2, width))
		line(fmt.Sprintf("int%d 0x12", 8*width), keyenc.AppendInt(nil, 0x12, width))
		line(fmt.Sprintf("uint%d 0x12", 8*width), keyenc.AppendUint(nil, 0x12, width))
	}
	line("int64 -1", keyenc.AppendInt64(nil, -1))
	line("uint64 1<<63", keyenc.AppendUint64(nil, 1<<63))
	for _, v := range []float64{math.Inf(-1), -1.5, math.Copysign(0, -1), 0, 1.5, math.Inf(1), math.NaN()} {
		line(fmt.Sprintf("float64 %g", v), keyenc.AppendFloat64(nil, v))
		line(fmt.Sprintf("float32 %g", v), keyenc.AppendFloat32(nil, float32(v)))
	}
	for _, s := range []string{"", "abc", "a\x00b", "\x00", "\x01\xff"} {
		line(fmt.Sprintf("string %q", s), keyenc.AppendString(nil, s))
	}
	line("string prefix \"a\\x00b\"", keyenc.AppendBytesPrefix(nil, []byte("a\x00b")))
	for _, v := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 999_999_999), time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)} {
		line("time "+v.UTC().Format(time.RFC3339Nano), keyenc.AppendTime(nil, v))
	}
	const path = "testdata/keys.golden"
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}
