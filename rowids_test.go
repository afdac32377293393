package rekindle_test

import (
	"flag"
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
				if life == 1 { // the first reopened one: the marks of both tables are at the ends of pages
					early = high
				}
				if life > 1 {
					require.LessOrEqual(t, high, early+512, "life %d: an array page more, of the rest of a range", life)
				}
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

var shortLives = flag.Int("rowids.lives", 8, "lives of TestRowIDsOfShortLives")

// TestRowIDsOfShortLives: lives that end by a crash, with all that they did in the
// log alone, or with a checkpoint in between, need no more row identities either.
func TestRowIDsOfShortLives(t *testing.T) {
	const rows = 1000
	ends := []string{"killed", "closed", "checkpoint, killed", "rows stay, killed"}
	for _, strategy := range rekindle.IndexStrategies() {
		for _, end := range ends {
			t.Run(strategy+"/"+end, func(t *testing.T) {
				fs := vfs.NewMem()
				var early int64
				for life := range *shortLives {
					db, items := openItems(t, fs, rekindle.Options{CheckpointBytes: -1, IndexStrategy: strategy})
					each := func(do func(tx *rekindle.Tx, row *item) error) {
						for first := int64(0); first < rows; first += 100 {
							update(t, db, func(tx *rekindle.Tx) {
								for id := first; id < first+100; id++ {
									require.NoError(t, do(tx, &item{ID: id, Name: fmt.Sprint(id)}))
								}
							})
						}
					}
					if end == "rows stay, killed" && life > 0 {
						each(items.Delete)
						settle(t, db)
					}
					each(items.Insert)
					high := db.Stats().RowIDHighWater
					if life == 1 {
						early = high
					}
					if life > 1 {
						require.LessOrEqual(t, high, early+512, "life %d", life)
					}
					if end == "checkpoint, killed" {
						require.NoError(t, db.Checkpoint(t.Context()))
					}
					if end != "rows stay, killed" {
						each(items.Delete)
					}
					crashed := fs.CrashClone(nil, vfs.Kill)
					require.NoError(t, db.Close(t.Context()))
					if end != "closed" {
						fs = crashed
					}
				}
			})
		}
	}
}
