package overhead

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/dataset"
)

// The number of rows stays, whatever the clients do side by side.
func TestTransactionsKeepThePopulation(t *testing.T) {
	const rows = minRows
	ctx := t.Context()
	db, err := rekindle.Open(ctx, t.TempDir(), &rekindle.Options{Durability: rekindle.None, SegmentBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(context.WithoutCancel(ctx))) }()
	table, err := dataset.Open(ctx, db, 2)
	require.NoError(t, err)
	require.NoError(t, dataset.Load(ctx, db, table, 0, rows, func(int64, int64) {}))
	p := newPopulation(rows)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			tr := &transaction{session: table.Session(), rows: p, rng: rand.New(rand.NewPCG(1, uint64(i))), reads: make([]uint64, 2)}
			for range 2000 {
				if err := tr.run(ctx, db); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	require.Equal(t, uint64(rows), p.next.Load()-p.oldest.Load())
	require.Greater(t, p.oldest.Load(), uint64(rows), "each row has been replaced")
	require.NoError(t, db.View(ctx, func(tx *rekindle.Tx) error {
		s := table.Session()
		require.ErrorIs(t, s.Get(tx, dataset.Key(p.oldest.Load()-1)), rekindle.ErrNotFound)
		for n := p.oldest.Load(); n < p.next.Load(); n++ {
			require.NoError(t, s.Get(tx, dataset.Key(n)))
		}
		require.ErrorIs(t, s.Get(tx, dataset.Key(p.next.Load())), rekindle.ErrNotFound)
		return nil
	}))
}

func TestRandomRowsAreAwayFromTheEnds(t *testing.T) {
	p := newPopulation(minRows)
	for range 300 {
		p.replace()
	}
	there := map[uint64]bool{}
	for n := uint64(300 + minRows/4); n < 300+minRows*3/4; n++ {
		there[dataset.Key(n)] = true
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		require.True(t, there[p.random(rng)])
	}
}
