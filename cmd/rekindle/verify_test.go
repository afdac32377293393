package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

type verified struct {
	ID int64 `rekindle:",pk"`
}

// makeVerified makes a closed database with some rows.
func makeVerified(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "db")
	db, err := rekindle.Open(t.Context(), dir, nil)
	require.NoError(t, err)
	rows, err := rekindle.OpenTable[verified](t.Context(), db, "rows")
	require.NoError(t, err)
	require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error {
		for i := range int64(100) {
			if err := rows.Insert(tx, &verified{i}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, db.Close(t.Context()))
	return dir
}

// flipBit damages the one file that fits a pattern.
func flipBit(t *testing.T, pattern string, at int) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, names, 1)
	data, err := os.ReadFile(names[0])
	require.NoError(t, err)
	data[at] ^= 1
	require.NoError(t, os.WriteFile(names[0], data, 0o600))
}

func TestVerify(t *testing.T) {
	dir := makeVerified(t)
	verify := func() (code int, out string) {
		var o, e bytes.Buffer
		code = run(t.Context(), []string{"verify", dir}, streams{out: &o, err: &e})
		return code, o.String() + e.String()
	}
	code, out := verify()
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "101 rows checked, 0 findings")

	flipBit(t, filepath.Join(dir, "ckpt", "*", "array-1.ria"), 5000)
	code, out = verify()
	require.Equal(t, exitFailure, code)
	require.Contains(t, out, "array-1.ria at offset 4096")
	require.Contains(t, out, "damaged")

	db, err := rekindle.Open(t.Context(), dir, nil)
	require.NoError(t, err)
	code, out = verify()
	require.Equal(t, exitFailure, code)
	require.Contains(t, out, "locked")
	require.NoError(t, db.Close(t.Context()))
}
