package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestBackup(t *testing.T) {
	type thing struct {
		ID int64 `rekindle:",pk"`
	}
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	var out, errs bytes.Buffer
	backup := func(to string) int {
		return run(t.Context(), []string{"backup", dir, to}, streams{out: &out, err: &errs})
	}
	require.Equal(t, exitFailure, backup(to), "there is no database")
	db, err := rekindle.Open(t.Context(), dir, nil)
	require.NoError(t, err)
	things, err := rekindle.OpenTable[thing](t.Context(), db, "things")
	require.NoError(t, err)
	require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error { return things.Insert(tx, &thing{ID: 7}) }))
	require.Equal(t, exitFailure, backup(to), "it is open")
	require.NoError(t, db.Close(t.Context()))

	errs.Reset()
	require.Equal(t, exitOK, backup(to), errs.String())
	require.Contains(t, out.String(), to)
	require.Equal(t, exitUsage, backup(to), "the directory is not empty")
	db, err = rekindle.Open(t.Context(), to, nil)
	require.NoError(t, err)
	things, err = rekindle.OpenTable[thing](t.Context(), db, "things")
	require.NoError(t, err)
	require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error { return things.Get(tx, &thing{ID: 7}) }))
	require.NoError(t, db.Close(t.Context()))
}
