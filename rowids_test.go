package rekindle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// TestRowIDsOfEarlierLives: a database that is opened to replace its rows again
// and again needs no more row identities than it has rows, also when it is
// written before anybody has had time to look for free ones.
func TestRowIDsOfEarlierLives(t *testing.T) {
	const rows = 1000
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			var early int64
			for life := range 8 {
				db, items := openItems(t, fs, rekindle.Options{CheckpointBytes: -1, IndexStrategy: strategy})
				for first := int64(0); first < rows; first += 50 {
					update(t, db, func(tx *rekindle.Tx) {
						for id := first; id < first+50; id++ {
							require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id)}))
						}
					})
				}
				high := settle(t, db).RowIDHighWater
				if life == 0 {
					early = high
				}
				require.LessOrEqual(t, high, early+512, "life %d: an array page more, of the rest of a range", life)
				update(t, db, func(tx *rekindle.Tx) {
					for id := range int64(rows) {
						require.NoError(t, items.Delete(tx, &item{ID: id}))
					}
				})
				require.NoError(t, db.Close(t.Context()))
			}
		})
	}
}
