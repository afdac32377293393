package tpcc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

const testSeed = 42

var testDate = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// newDatabase loads a database in a temporary directory.
func newDatabase(t *testing.T, scale Scale) *Tables {
	t.Helper()
	db, err := rekindle.Open(t.Context(), t.TempDir(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.Background())) })
	tables, err := OpenTables(t.Context(), db)
	require.NoError(t, err)
	require.NoError(t, Load(t.Context(), tables, LoadOptions{Scale: scale, Seed: testSeed, Now: testDate}))
	return tables
}

func newTerminal(t *Tables, scale Scale, number int) *Terminal {
	return NewTerminal(t, TerminalOptions{
		Scale:     scale,
		Constants: RunConstants(testSeed+1, LoadConstants(testSeed)),
		Seed:      testSeed,
		Number:    number,
	})
}

func update(t *testing.T, tables *Tables, fn func(tx *rekindle.Tx)) {
	t.Helper()
	require.NoError(t, tables.DB.Update(t.Context(), func(tx *rekindle.Tx) error {
		fn(tx)
		return nil
	}))
}

func view(t *testing.T, tables *Tables, fn func(tx *rekindle.Tx)) {
	t.Helper()
	require.NoError(t, tables.DB.View(t.Context(), func(tx *rekindle.Tx) error {
		fn(tx)
		return nil
	}))
}

// get returns the row that has the key fields of row.
func get[T any](t *testing.T, tables *Tables, table *rekindle.Table[T], row T) T {
	t.Helper()
	view(t, tables, func(tx *rekindle.Tx) { require.NoError(t, table.Get(tx, &row)) })
	return row
}

func all[T any](t *testing.T, tables *Tables, table *rekindle.Table[T]) []T {
	t.Helper()
	var rows []T
	view(t, tables, func(tx *rekindle.Tx) {
		var err error
		rows, err = collect(table.All(tx))
		require.NoError(t, err)
	})
	return rows
}

func audit(t *testing.T, tables *Tables) *Audit {
	t.Helper()
	a, err := ReadAudit(t.Context(), tables)
	require.NoError(t, err)
	return a
}

func requireConsistent(t *testing.T, tables *Tables) {
	t.Helper()
	for _, f := range audit(t, tables).Conditions() {
		require.True(t, f.OK(), "%s: %v", f.Check, f.Details)
		require.Positive(t, f.Checked, f.Check)
	}
	rows, f, err := CrossCheck(t.Context(), tables)
	require.NoError(t, err)
	require.Positive(t, rows)
	require.True(t, f.OK(), "%s: %v", f.Check, f.Details)
}
