package rekindle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// TestArraysLeaveMemory: behind a checkpoint all pages of arrays leave memory when it
// is short, again after everything that brings them back.
func TestArraysLeaveMemory(t *testing.T) {
	rows := int64(6000)
	if invariants.Enabled {
		rows /= 2
	}
	fs := vfs.NewMem()
	// With this budget memory is always short.
	o := rekindle.Options{MemoryBudget: 1, SegmentBytes: 64 << 10, CheckpointBytes: -1}.Eager()
	db, items := openItems(t, fs, o)
	version := int32(0)
	each := func(step int64, do func(tx *rekindle.Tx, row *item) error) {
		update(t, db, func(tx *rekindle.Tx) {
			for id := int64(0); id < rows; id += step {
				require.NoError(t, do(tx, &item{ID: id, Name: fmt.Sprint(id), Group: version}))
			}
		})
	}
	leaves := func(after string) {
		t.Helper()
		require.NoError(t, db.Checkpoint(t.Context()))
		require.Eventually(t, func() bool { return db.Stats().ArrayBytes == 0 }, 20*time.Second, time.Millisecond, after)
		count, err := db.CrossCheck(t.Context())
		require.NoError(t, err, after)
		require.EqualValues(t, rows+1, count, "%s: and that of the catalogue", after)
		require.Zero(t, db.Stats().ArrayBytes, "%s: reading needs no page", after)
	}
	each(1, items.Insert)
	require.NotZero(t, db.Stats().ArrayBytes)
	leaves("inserts")
	version++
	each(37, items.Update)
	require.NotZero(t, db.Stats().ArrayBytes)
	leaves("updates of some rows of a page")
	version++
	each(2, items.Update)
	require.NoError(t, db.Compact(t.Context()))
	require.NotZero(t, db.Stats().CompactedRows)
	leaves("compaction")

	used := db.Stats().RowIDHighWater
	each(3, items.Delete)
	settle(t, db)
	each(3, items.Insert)
	leaves("row identities used again")
	require.LessOrEqual(t, db.Stats().RowIDHighWater, used+rows/20)

	version++
	each(5, items.Update) // the tail of the next life
	crashed := fs.CrashClone(nil, vfs.Kill)
	require.NoError(t, db.BackupOn(t.Context(), fs, "/copy"))
	require.NoError(t, db.Close(t.Context()))
	db, items = openItems(t, crashed, o)
	used = db.Stats().RowIDHighWater
	leaves("a crash")
	each(4, items.Delete)
	settle(t, db)
	each(4, items.Insert)
	leaves("row identities used again after it")
	require.LessOrEqual(t, db.Stats().RowIDHighWater, used+rows/20)
	report, err := db.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.NoError(t, db.Close(t.Context()))

	db, items = openItemsAt(t, fs, "/copy")
	require.Len(t, allItems(t, db, items), int(rows))
	require.NoError(t, db.Close(t.Context()))
}
