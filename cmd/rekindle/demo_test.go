package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/bench"
)

// asCommand makes the test binary behave as the command, for the demo runs its
// own executable.
const asCommand = "REKINDLE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// command runs a command line with temporary files in a directory of its own,
// which is returned.
func command(t *testing.T, ctx context.Context, args ...string) (code int, out, errOut, tmp string) {
	t.Helper()
	tmp = t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv(asCommand, "1")
	var stdout, stderr bytes.Buffer
	code = run(ctx, args, streams{out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String(), tmp
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestDemoEndToEnd(t *testing.T) {
	code, out, errOut, tmp := command(t, t.Context(),
		"demo", "-scale", "tiny", "-warehouses", "2", "-rounds", "2", "-seconds", "0.4", "-terminals=3")
	require.Equal(t, exitOK, code, errOut)
	require.Regexp(t, `^seed [1-9]\d*, warehouses 2,`, errOut)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4, "header, two rounds, summary: %s", out)
	require.Contains(t, lines[0], "first read")
	require.Contains(t, lines[2], "16 ok")
	require.Contains(t, lines[3], "all there and consistent")
	requireEmpty(t, tmp)
}

func TestDemoInJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	code, out, errOut, tmp := command(t, t.Context(),
		"demo", "--scale", "tiny", "--rounds", "1", "--seconds", "0.3", "-seed", "7", "-json", "-dir", dir)
	require.Equal(t, exitOK, code, errOut)
	require.Contains(t, errOut, "seed 7,")
	values := map[string]float64{}
	for line := range strings.Lines(out) {
		var m bench.Metric
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&m), line)
		require.NotEmpty(t, m.Strategy)
		require.NotEmpty(t, m.Unit)
		values[m.Name] = m.Value
	}
	require.Zero(t, values["demo/violations"])
	require.Positive(t, values["demo/round=1/first-read"])
	require.Positive(t, values["demo/round=1/orders-found"])
	require.Positive(t, values["demo/round=1/rows"])
	requireEmpty(t, tmp)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, entries, "a directory that the user names is kept")
	code, _, errOut, _ = command(t, t.Context(), "demo", "-scale", "tiny", "-dir", dir)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "not empty")
}

func TestDemoCleansUpWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	code, out, errOut, tmp := command(t, ctx, "demo", "-scale", "tiny", "-rounds", "1", "-seconds", "300")
	require.Equal(t, exitFailure, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "interrupted")
	require.Less(t, time.Since(start), time.Minute)
	requireEmpty(t, tmp)
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "which command"},
		{[]string{"dmo"}, "dmo"},
		{[]string{"help", "dmo"}, "dmo"},
		{[]string{"help", "demo", "extra"}, "extra"},
		{[]string{"demo", "extra"}, "extra"},
		{[]string{"demo", "-nonsense"}, "nonsense"},
		{[]string{"demo", "-rounds", "many"}, "many"},
		{[]string{"demo", "-rounds", "0"}, "rounds"},
		{[]string{"demo", "-seconds", "-1"}, "duration"},
		{[]string{"demo", "-terminals", "0"}, "terminals"},
		{[]string{"demo", "-warehouses", "0"}, "warehouses"},
		{[]string{"demo", "-scale", "huge"}, "huge"},
		{[]string{"demo", "-scale", "tiny", "-strategy", "nonsense"}, "nonsense"},
		{[]string{"demo-child"}, "arg"},
		{[]string{"demo-child", "{"}, "JSON"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, out, errOut, tmp := command(t, t.Context(), c.args...)
			require.Equal(t, exitUsage, code, errOut)
			require.Empty(t, out)
			require.Contains(t, errOut, c.want)
			require.Contains(t, errOut, "-help'")
			requireEmpty(t, tmp)
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"-help"}, {"demo", "-help"}, {"help"}, {"help", "demo"}, {"help", "bench", "recovery"}} {
		code, out, errOut, _ := command(t, t.Context(), args...)
		require.Equal(t, exitOK, code, "%q: %s", args, errOut)
		require.Contains(t, out, "Usage:")
		require.NotContains(t, out, demoChild)
	}
}

func TestDemoFailsOnAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, errOut, _ := command(t, t.Context(), "demo", "-scale", "tiny", "-dir", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, file)
}
