package bench

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	a := Measurement{Bench: "recovery", Metric: Metric{Strategy: "rebuild"}, Rows: 1000, Stop: "kill"}
	b := a
	b.Strategy, b.Cold = "iacow", true
	series := a
	series.At = 0.1
	lines := []Measurement{
		a.With("open_ms", "ms", 1234.5), b.With("open_ms", "ms", 0.12345),
		a.With("replayed", "1", 0), a.With("unnamed", "1", 1), series.With("open_ms", "ms", 7),
	}
	var out bytes.Buffer
	names := []string{"replayed", "absent", "open_ms"}
	require.NoError(t, WriteTable(&out, lines, []string{"strategy", "rows", "cold"}, names))
	require.Equal(t, ""+
		"  strategy  rows   cold  replayed  open_ms\n"+
		"   rebuild  1000  false         0     1234\n"+
		"     iacow  1000   true         -    0.123\n", out.String())
	out.Reset()
	require.NoError(t, WriteTable(&out, lines, nil, []string{"absent"}))
	require.Empty(t, out.String())

	full := errors.New("full")
	require.ErrorIs(t, WriteTable(failing{full}, lines, []string{"rows"}, names), full)
}
