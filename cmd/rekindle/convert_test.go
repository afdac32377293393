package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestConvert(t *testing.T) {
	type thing struct {
		ID int64 `rekindle:",pk"`
	}
	dir := t.TempDir()
	db, err := rekindle.Open(t.Context(), dir, nil)
	require.NoError(t, err)
	things, err := rekindle.OpenTable[thing](t.Context(), db, "things")
	require.NoError(t, err)
	require.NoError(t, db.Update(t.Context(), func(tx *rekindle.Tx) error { return things.Insert(tx, &thing{ID: 7}) }))
	require.NoError(t, db.Close(t.Context()))

	for _, strategy := range rekindle.IndexStrategies() {
		var out, errs bytes.Buffer
		require.Equal(t, exitOK, run(t.Context(), []string{"convert", "-strategy", strategy, dir}, streams{out: &out, err: &errs}), errs.String())
		require.Contains(t, out.String(), strategy)
		db, err := rekindle.Open(t.Context(), dir, &rekindle.Options{IndexStrategy: strategy})
		require.NoError(t, err)
		things, err := rekindle.OpenTable[thing](t.Context(), db, "things")
		require.NoError(t, err)
		require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error { return things.Get(tx, &thing{ID: 7}) }))
		require.NoError(t, db.Close(t.Context()))
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"convert", "-strategy", "magic", dir}, streams{out: &out, err: &errs}))
	require.Equal(t, exitUsage, run(t.Context(), []string{"convert", dir}, streams{out: &out, err: &errs}))
	require.Contains(t, errs.String(), "-strategy")
	require.Equal(t, exitUsage, run(t.Context(), []string{"convert"}, streams{out: &out, err: &errs}))
}
