package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
)

// requireLines checks that every line has the form that users rely on, and
// returns the values of one strategy by name and condition.
func requireLines(t *testing.T, text, benchmark string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		require.Equal(t, benchmark, fields["bench"])
		require.IsType(t, "", fields["strategy"])
		require.IsType(t, 0.0, fields["rows"])
		require.IsType(t, 0.0, fields["tail"])
		require.IsType(t, true, fields["cold"])
		require.Contains(t, []any{"kill", "close"}, fields["stop"])
		require.IsType(t, 0.0, fields["value"])
		require.NotEmpty(t, fields["unit"])
		name := fields["name"].(string)
		if condition, ok := fields["checkpoints"]; ok {
			name = condition.(string) + " " + name
		}
		values[name] = fields["value"].(float64)
	}
	return values
}

func TestBenchRecovery(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines.json")
	code, out, errOut, tmp := command(t, t.Context(), "bench", "recovery", "-strategy", "all", "-rows", "1000", "-tail", "50",
		"-stop", "kill", "-runs=1", "-seconds", "0.2", "-writers", "4", "-indexes", "2", "-cold=no", "-json", file)
	require.Equal(t, exitOK, code, errOut)
	require.Contains(t, out, "first_read_ms")
	require.Contains(t, out, "phase_replay_ms")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	values := requireLines(t, string(text), "recovery")
	for _, name := range []string{"open_ms", "first_read_ms", "reads_10k_ms", "steady_s", "peak_rss_mb", "mapped_mb", "read_mb", "replayed", "reads_s"} {
		require.Contains(t, values, name)
	}
	require.GreaterOrEqual(t, values["replayed"], 50.0)
	for _, strategy := range rekindle.IndexStrategies() {
		require.Contains(t, out, strategy)
		require.Contains(t, string(text), `"`+strategy+`"`)
	}
	requireEmpty(t, tmp)
}

func TestBenchOverhead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	code, out, errOut, tmp := command(t, t.Context(), "bench", "overhead", "-strategy", rekindle.IndexStrategies()[0], "-rows", "1000",
		"-runs", "1", "-seconds", "0.3", "-every", "0.1", "-writers", "4", "-json", "-", "-dir", dir)
	require.Equal(t, exitOK, code, errOut)
	values := requireLines(t, out, "overhead")
	for _, condition := range []string{"off ", "on "} {
		for _, name := range []string{"tx_s", "commit_p50_us", "commit_p99_us", "commit_p999_us", "index_mb", "timeline_tx_s"} {
			require.Contains(t, values, condition+name)
		}
	}
	for _, condition := range []string{"full ", "incremental ", "on "} {
		require.Contains(t, values, condition+"ckpt_mb")
		require.Contains(t, values, condition+"ckpt_ms")
	}
	requireEmpty(t, tmp)
	requireEmpty(t, dir)
}

func TestBenchCleansUpWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	code, out, errOut, tmp := command(t, ctx, "bench", "recovery", "-rows", "1000", "-seconds", "300")
	require.Equal(t, exitFailure, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "interrupted")
	requireEmpty(t, tmp)
}

func TestBenchUsageErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "which benchmark"},
		{"nonsense", "nonsense"},
		{"recovery -rows many", "many"},
		{"recovery -rows 0", "rows"},
		{"recovery -tail -1", "tail"},
		{"recovery -stop crash", "crash"},
		{"recovery -cold=maybe", "maybe"},
		{"recovery -drop some", "some"},
		{"recovery -strategy nonsense", "nonsense"},
		{"recovery -indexes 9", "indexes"},
		{"recovery -json /nonexistent/x", "/nonexistent/x"},
		{"overhead -every 20", "milliseconds"},
		{"overhead -rows 10", "rows"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errOut, tmp := command(t, t.Context(), append([]string{"bench"}, strings.Fields(c.args)...)...)
			require.Equal(t, exitUsage, code, errOut)
			require.Empty(t, out)
			require.Contains(t, errOut, c.want)
			requireEmpty(t, tmp)
		})
	}
	code, _, errOut, _ := command(t, t.Context(), benchTask, "nonsense", "{}")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "no such task")
}

func TestBenchResultsGoToTheFileAsTheyCome(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines.json")
	r, err := newBenchResults(name, streams{})
	require.NoError(t, err)
	line := bench.Measurement{Bench: "recovery"}.With("open_ms", "ms", 1)
	require.NoError(t, r.add([]bench.Measurement{line}))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	found, err := bench.ReadMeasurements(f)
	require.NoError(t, err)
	require.Equal(t, []bench.Measurement{line}, found)
	require.NoError(t, r.close())
}
