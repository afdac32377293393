package overhead

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
)

// The number of rows stays, whatever the clients do side by side.
func TestTransactionsKeepThePopulation(t *testing.T) {
	const rows, clients = 1001, 4
	ctx := t.Context()
	db, err := rekindle.Open(ctx, t.TempDir(), &rekindle.Options{Durability: rekindle.None, SegmentBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(context.WithoutCancel(ctx))) }()
	table, err := dataset.Open(ctx, db, 2)
	require.NoError(t, err)
	require.NoError(t, dataset.Load(ctx, db, table, 0, rows, func(int64, int64) {}))
	p := newPopulation(rows, clients)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			tr := newTransaction(table.Session(), p, i, 2)
			for range 2000 {
				if err := tr.run(ctx, db); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, bench.Settle(ctx, db))
	require.NoError(t, db.View(ctx, func(tx *rekindle.Tx) error {
		requireShares(t, tx, table.Session(), p, rows)
		return nil
	}))
}

func requireShares(t *testing.T, tx *rekindle.Tx, s dataset.Session, p *population, rows uint64) {
	t.Helper()
	var sum uint64
	for c := range p.shares {
		oldest, next := p.shares[c].oldest.Load(), p.shares[c].next.Load()
		sum += next - oldest
		require.Greater(t, oldest, rows/4, "each row has been replaced")
		require.ErrorIs(t, s.Get(tx, p.key(c, oldest-1)), rekindle.ErrNotFound)
		for row := oldest; row < next; row++ {
			require.NoError(t, s.Get(tx, p.key(c, row)))
		}
		require.ErrorIs(t, s.Get(tx, p.key(c, next)), rekindle.ErrNotFound)
	}
	require.Equal(t, rows, sum)
}

func TestRandomRowsAreAwayFromTheEnds(t *testing.T) {
	const rows, clients = 100, 3
	p := newPopulation(rows, clients)
	for range 50 {
		p.replace(1)
	}
	there := map[uint64]bool{}
	for c, begin := range []uint64{0, 50, 0} {
		for row := begin + 8; row < begin+34-8; row++ {
			there[p.key(c, row)] = true
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		require.True(t, there[p.random(rng)])
	}
	insert, remove := p.replace(2)
	require.Equal(t, dataset.Key(33*clients+2), insert)
	require.Equal(t, dataset.Key(2), remove)
}
