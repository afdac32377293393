package rekindle_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

// BenchmarkCold reads rows that are not in memory.
func BenchmarkCold(b *testing.B) {
	const rows = 200_000
	for _, order := range []string{"ascending", "random"} {
		dir := b.TempDir()
		o := rekindle.Options{MemoryBudget: 8 << 20, Durability: rekindle.None}
		db, err := rekindle.Open(b.Context(), dir, &o)
		require.NoError(b, err)
		blobs, err := rekindle.OpenTable[blob](b.Context(), db, "blobs")
		require.NoError(b, err)
		ids := make([]int64, rows)
		for i := range ids {
			ids[i] = int64(i)
		}
		if order == "random" {
			rand.Shuffle(rows, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		}
		for len(ids) > 0 {
			require.NoError(b, db.Update(b.Context(), func(tx *rekindle.Tx) error {
				row := blob{Data: make([]byte, *budgetRow)}
				for _, row.ID = range ids[:1000] {
					if err := blobs.Insert(tx, &row); err != nil {
						return err
					}
				}
				return nil
			}))
			ids = ids[1000:]
		}
		b.Run("scan/"+order, func(b *testing.B) {
			n := 0
			for n < b.N {
				require.NoError(b, db.View(b.Context(), func(tx *rekindle.Tx) error {
					return blobs.Visit(tx, rekindle.Query{}, func(*blob) error { n++; return nil })
				}))
			}
		})
		b.Run("many/"+order, func(b *testing.B) {
			batch := make([]blob, 100)
			for n := 0; n < b.N; n += len(batch) {
				for i := range batch {
					batch[i].ID = rand.Int64N(rows)
				}
				require.NoError(b, db.View(b.Context(), func(tx *rekindle.Tx) error {
					_, err := blobs.GetMany(tx, batch)
					return err
				}))
			}
		})
		b.Run("get/"+order, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, db.View(b.Context(), func(tx *rekindle.Tx) error {
					return blobs.Get(tx, &blob{ID: rand.Int64N(rows)})
				}))
			}
		})
		require.NoError(b, db.Close(b.Context()))
	}
}
