package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestSalvage(t *testing.T) {
	dir := makeVerified(t)
	to := filepath.Join(t.TempDir(), "new")
	salvage := func(args ...string) (code int, out string) {
		var o, e bytes.Buffer
		code = run(t.Context(), append([]string{"salvage"}, args...), streams{out: &o, err: &e})
		return code, o.String() + e.String()
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "CURRENT")))
	flipBit(t, filepath.Join(dir, "MANIFEST-*"), 30)
	code, out := salvage(dir, to)
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "rows: 100 rows, 0 of them doubtful")
	require.Contains(t, out, "nothing is missing")
	db, err := rekindle.Open(t.Context(), to, nil)
	require.NoError(t, err)
	rows, err := db.CrossCheck(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 101, rows)
	require.NoError(t, db.Close(t.Context()))

	for _, args := range [][]string{{dir, dir}, {dir, filepath.Join(dir, "in")}, {dir, to}, {dir}} {
		code, out = salvage(args...)
		require.Equal(t, exitUsage, code, out)
	}
	code, out = salvage(t.TempDir(), filepath.Join(t.TempDir(), "other"))
	require.Equal(t, exitFailure, code, out)
}
