package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTortureEndToEnd(t *testing.T) {
	code, out, errOut, tmp := command(t, t.Context(), "torture", "-rounds", "3", "-seed", "5", "-workload", "counters", "-durability", "5ms", "-streams", "2")
	require.Equal(t, exitOK, code, errOut)
	require.Contains(t, errOut, "seed 5,")
	require.Regexp(t, `(?m)^rounds +3 in `, out)
	require.Regexp(t, `(?m)^  LOST +0$`, out)
	requireEmpty(t, tmp)
}

func TestTortureForAWhile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	code, out, errOut, _ := command(t, t.Context(), "torture", "-rounds", "0", "-seconds", "0.1", "-workload", "tpcc", "-dir", dir)
	require.Equal(t, exitOK, code, errOut)
	require.Regexp(t, `(?m)^rounds +1 in `, out)
	require.DirExists(t, dir)
}

func TestTortureUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"},
		{"-rounds", "-1"},
		{"-workload", "sleep"},
		{"-durability", "often"},
		{"-durability", "-5ms"},
		{"-streams", "-1"},
		{"-strategy", "none"},
		{"-dir", "."},
		{"more"},
	} {
		code, out, errOut, _ := command(t, t.Context(), append([]string{"torture"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errOut)
		require.Empty(t, out)
		require.Contains(t, errOut, "See 'rekindle torture -help'")
	}
}
