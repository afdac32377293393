package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/rekindledb/rekindle/bench"
)

// example has two strategies, two sizes, and everything that is drawn.
func example() []bench.Measurement {
	var lines []bench.Measurement
	for i, strategy := range []string{"rebuild", "iacow"} {
		for _, rows := range []int64{100_000, 1_000_000} {
			m := bench.Measurement{Bench: "recovery", Metric: bench.Metric{Strategy: strategy}, Rows: rows, Stop: "kill"}
			lines = append(lines, m.With("first_read_ms", "ms", float64(rows)/1000), m.With("index_mb", "MB", 10), m.With("peak_rss_mb", "MB", 30))
			for m.At = 0.1; m.At < 1; m.At += 0.1 {
				lines = append(lines, m.With("reads_s", "1/s", 1e5*m.At))
			}
		}
		m := bench.Measurement{Bench: "overhead", Metric: bench.Metric{Strategy: strategy}, Rows: 100_000, Checkpoints: "on"}
		lines = append(lines, m.With("index_mb", "MB", float64(10+i)))
		for m.At = 0.1; m.At < 1; m.At += 0.1 {
			share := 0.0
			if m.At > 0.5 {
				share = 1
			}
			lines = append(lines, m.With("timeline_tx_s", "1/s", 1e4), m.With("timeline_ckpt", "1", share))
		}
	}
	return lines
}

func writeLines(t *testing.T, lines []bench.Measurement) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "lines.json")
	var text bytes.Buffer
	require.NoError(t, bench.WriteJSON(&text, lines))
	require.NoError(t, os.WriteFile(name, text.Bytes(), 0o600))
	return name
}

func TestFiguresOfAllKinds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "svg")
	var out bytes.Buffer
	require.NoError(t, run([]string{"-out", dir, writeLines(t, example())}, &out, io.Discard))
	want := map[string][]string{
		"recovery-kill-tail0-warm":      {"iacow", "rebuild", "1000000", "rows"},
		"climb-kill-tail0-warm-100000":  {"iacow", "rebuild", "reads/s"},
		"climb-kill-tail0-warm-1000000": {"iacow", "rebuild", "reads/s"},
		"timeline-100000":               {"iacow", "rebuild", "transactions/s", "#DDDDDD"},
		"memory-100000":                 {"iacow", "rebuild", "indexes under load", "after a restart"},
		"memory-1000000":                {"iacow", "rebuild", "after a restart"},
	}
	require.Equal(t, len(want), strings.Count(out.String(), "\n"), out.String())
	for name, texts := range want {
		requireSVG(t, filepath.Join(dir, name+".svg"), texts)
	}
}

func requireSVG(t *testing.T, name string, texts []string) {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, text := range texts {
		require.Contains(t, string(content), text, name)
	}
	for dec := xml.NewDecoder(bytes.NewReader(content)); ; {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, name)
	}
}

func TestWrongInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"bench":`), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "which files"},
		{[]string{"-nonsense"}, "nonsense"},
		{[]string{"absent.json"}, "absent.json"},
		{[]string{broken}, "broken.json"},
		{[]string{writeLines(t, nil)}, "nothing to draw"},
		{[]string{"-out", broken, writeLines(t, example())}, "broken.json"},
	} {
		require.ErrorContains(t, run(c.args, io.Discard, io.Discard), c.want)
	}
}

func TestUnbroken(t *testing.T) {
	series := func(xs ...float64) plotter.XYs {
		var points plotter.XYs
		for _, x := range xs {
			points = append(points, plotter.XY{X: x})
		}
		return points
	}
	require.Equal(t,
		[]plotter.XYs{series(0.1, 0.2), series(0.5, 0.6), series(1)},
		unbroken(series(0.1, 0.2, 0.5, 0.6, 1)))
	require.Empty(t, unbroken(nil))
}
