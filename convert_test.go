package rekindle_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// TestConvert takes a database through all strategies and back.
func TestConvert(t *testing.T) {
	fs := vfs.NewMem()
	names := rekindle.IndexStrategies()
	db, items := openItems(t, fs, rekindle.Options{IndexStrategy: names[len(names)-1]})
	for i := range int64(300) {
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i), Group: int32(i % 7)}))
		})
		if i == 200 {
			require.NoError(t, db.Checkpoint(t.Context()))
		}
	}
	want := allItems(t, db, items)
	crashed := fs.CrashClone(nil, vfs.Strict)
	require.NoError(t, db.Close(t.Context()))
	for _, disk := range []*vfs.Mem{fs, crashed} {
		for _, name := range names {
			require.NoError(t, rekindle.Convert(t.Context(), "/db", name, rekindle.Options{}.OnFS(disk)))
			db, items := openItems(t, disk, rekindle.Options{})
			require.Equal(t, name, db.RecoveryReport().Strategy)
			require.Equal(t, want, allItems(t, db, items))
			if name != "rebuild" {
				require.Zero(t, db.RecoveryReport().IndexesRebuilt, "converting has written the indexes")
			}
			_, err := db.CrossCheck(t.Context())
			require.NoError(t, err)
			require.NoError(t, db.Close(t.Context()))
		}
	}
	content := fs.Dump()
	for _, name := range []string{"magic", ""} {
		require.ErrorIs(t, rekindle.Convert(t.Context(), "/db", name, rekindle.Options{}.OnFS(fs)), rekindle.ErrInvalidOptions, name)
	}
	require.ErrorIs(t, rekindle.Convert(t.Context(), "/db", names[0], rekindle.Options{ReadOnly: true}.OnFS(fs)), rekindle.ErrInvalidOptions)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, rekindle.Convert(ended, "/db", names[0], rekindle.Options{}.OnFS(fs)), context.Canceled)
	require.Equal(t, content, fs.Dump(), "what is refused changes nothing")
}
