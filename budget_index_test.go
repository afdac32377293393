package rekindle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// entry is a row that takes less memory than its index entries.
type entry struct {
	ID    int64  `rekindle:",pk"`
	Name  string `rekindle:",index=by_name"`
	Title string `rekindle:",index=by_title"`
	Place string `rekindle:",index=by_place"`
}

func newEntry(id, version int64) *entry {
	text := func(seed int64) string {
		return fmt.Sprintf("%016x, as long as titles are, %03d", uint64(id*7919+seed)*0x9e3779b97f4a7c15, version)
	}
	return &entry{ID: id, Name: text(1), Title: text(2), Place: text(3)}
}

// TestIndexesWithinBudget: indexes that take more memory than the budget leave most
// of it behind checkpoints, which come early enough by themselves, while they are
// filled and changed.
func TestIndexesWithinBudget(t *testing.T) {
	rows, budget := int64(40_000), int64(8<<20)
	if invariants.Enabled {
		rows, budget = rows/8, budget/8
	}
	fs := vfs.NewMem()
	o := rekindle.Options{MemoryBudget: budget, Durability: rekindle.None, SegmentBytes: 1 << 20, IndexStrategy: "iacow"}
	db, err := rekindle.Open(t.Context(), "/db", o.OnFS(fs))
	require.NoError(t, err)
	entries, err := rekindle.OpenTable[entry](t.Context(), db, "entries")
	require.NoError(t, err)
	most, waits := int64(0), 0
	step := func(do func(tx *rekindle.Tx)) {
		update(t, db, do)
		inUse := db.Stats().ArenaInUse
		most = max(most, inUse)
		if inUse > budget*9/8 { // this is faster than any disk
			waits++
			require.Eventually(t, func() bool { return db.Stats().ArenaInUse <= budget }, 10*time.Second, time.Millisecond)
		}
	}
	for first := int64(0); first < rows; first += 100 {
		step(func(tx *rekindle.Tx) {
			for id := first; id < first+100; id++ {
				require.NoError(t, entries.Insert(tx, newEntry(id, 0)))
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for version := range rows / 200 {
		step(func(tx *rekindle.Tx) {
			for range 20 {
				require.NoError(t, entries.Update(tx, newEntry(rng.Int64N(rows), version)))
			}
		})
	}
	t.Logf("at most %d bytes in use, with a budget of %d; waited %d times", most, budget, waits)
	require.Positive(t, waits, "the indexes fit into the budget")
	require.Eventually(t, func() bool { return db.Stats().ArenaInUse <= budget }, 10*time.Second, time.Millisecond)
	count, err := db.CrossCheck(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, rows+1, count, "and that of the catalogue")
	require.NoError(t, db.Close(t.Context()))
}
