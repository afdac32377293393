package rekindle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

type bankAccount struct {
	ID      int32  `rekindle:",pk"`
	Number  string `rekindle:",unique"`
	Branch  int8   `rekindle:",index"`
	Balance int64
}

const (
	bankAccounts = 60
	bankOpening  = 1000
)

// bank is a set of accounts whose total never changes, whatever happens to the
// single ones: money moves, accounts move between branches, get new numbers, and
// are closed and opened again under the same key.
type bank struct {
	t        *testing.T
	db       *rekindle.DB
	size     int32
	frozen   bool // rows leave memory all the time
	accounts *rekindle.Table[bankAccount]
	commits  atomic.Int64
	reads    atomic.Int64
}

// TestStress lets writers, readers, checkpoints and the collector at each other.
// Every snapshot must show the whole bank, through every index, those that stay
// open for long the same one again and again until they are too old.
func TestStress(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			b := openBank(t, strategy, 0)
			b.run(time.Second)
			t.Logf("%d commits, %d reads", b.commits.Load(), b.reads.Load())
			_, err := b.db.CrossCheck(t.Context())
			require.NoError(t, err)
			require.NoError(t, b.db.Close(t.Context()))
		})
	}
}

// TestStressFrozen is TestStress with rows that leave memory as fast as they can.
func TestStressFrozen(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			b := openBank(t, strategy, 1)
			stats := b.db.Stats()
			for start := time.Now(); stats.RowsOnline < 300; stats = b.db.Stats() {
				require.Less(t, time.Since(start), 20*time.Second, "few rows are frozen")
				b.run(300 * time.Millisecond)
			}
			t.Logf("%d commits, %d reads, %d rows frozen, %d brought online", b.commits.Load(), b.reads.Load(), stats.RowsFrozen, stats.RowsOnline)
			_, err := b.db.CrossCheck(t.Context())
			require.NoError(t, err)
			require.NoError(t, b.db.Close(t.Context()))
		})
	}
}

func openBank(t *testing.T, strategy string, budget int64) *bank {
	o := rekindle.Options{SegmentBytes: 256 << 10, CheckpointBytes: -1, IndexStrategy: strategy, Durability: rekindle.None, MemoryBudget: budget, MaxSnapshotAge: 500 * time.Millisecond}
	db, err := rekindle.Open(t.Context(), "/bank", o.OnFS(vfs.NewMem()))
	require.NoError(t, err)
	b := &bank{t: t, db: db, frozen: budget > 0, size: bankAccounts}
	if b.frozen {
		b.size *= 10 // or most rows would change again before the watermark has reached them
	}
	b.accounts, err = rekindle.OpenTable[bankAccount](t.Context(), db, "accounts")
	require.NoError(t, err)
	update(t, db, func(tx *rekindle.Tx) {
		for id := range b.size {
			a := bankAccount{ID: id, Number: fmt.Sprint(id), Branch: int8(id % 4), Balance: bankOpening}
			require.NoError(t, b.accounts.Insert(tx, &a))
		}
	})
	return b
}

func (b *bank) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	var group sync.WaitGroup
	loop := func(n int, step func(rng *rand.Rand) error) {
		for i := range n {
			group.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
				for ctx.Err() == nil {
					if err := step(rng); err != nil && !errors.Is(err, rekindle.ErrSnapshotTooOld) {
						b.t.Error(err)
						cancel()
					}
				}
			})
		}
	}
	loop(4, b.change)
	loop(2, b.look)
	if !b.frozen { // what old snapshots see stays in memory
		loop(3, b.stare)
	}
	loop(1, func(*rand.Rand) error {
		if b.frozen { // not while a checkpoint holds back the watermark
			time.Sleep(10 * time.Millisecond)
		}
		return b.db.Checkpoint(context.Background())
	})
	if b.frozen {
		loop(1, func(*rand.Rand) error { b.db.FreezeNow(); time.Sleep(200 * time.Microsecond); return nil })
	}
	group.Wait()
}

func (b *bank) change(rng *rand.Rand) error {
	defer b.commits.Add(1)
	return b.db.Update(context.Background(), func(tx *rekindle.Tx) error {
		from, to := bankAccount{ID: rng.Int32N(b.size)}, bankAccount{ID: rng.Int32N(b.size)}
		if err := b.accounts.Get(tx, &from); err != nil {
			return err
		}
		if err := b.accounts.Get(tx, &to); err != nil {
			return err
		}
		if from.ID == to.ID {
			return b.reopen(tx, from)
		}
		amount := rng.Int64N(100)
		from.Balance -= amount
		to.Balance += amount
		to.Branch = int8(rng.IntN(4))
		from.Number, to.Number = fmt.Sprint(from.ID, "-", rng.IntN(3)), fmt.Sprint(to.ID, "-", rng.IntN(3))
		if err := b.accounts.Update(tx, &from); err != nil {
			return err
		}
		return b.accounts.Update(tx, &to)
	})
}

// reopen closes an account and opens it again under the same keys.
func (b *bank) reopen(tx *rekindle.Tx, a bankAccount) error {
	if err := b.accounts.Delete(tx, &a); err != nil {
		return err
	}
	return b.accounts.Insert(tx, &a)
}

func (b *bank) look(rng *rand.Rand) error {
	defer b.reads.Add(1)
	queries := []rekindle.Query{{}, {Index: "branch"}, {Index: "number"}, {Index: "number", Reverse: true}}
	return b.db.View(context.Background(), func(tx *rekindle.Tx) error {
		q := queries[rng.IntN(len(queries))]
		var total, count int64
		for a, err := range b.accounts.Scan(tx, q) {
			if err != nil {
				return err
			}
			total += a.Balance
			count++
		}
		if total != int64(b.size)*bankOpening || count != int64(b.size) {
			return fmt.Errorf("%+v shows %d accounts with %d in all", q, count, total)
		}
		return nil
	})
}

// stare looks at the accounts several times in one transaction.
func (b *bank) stare(rng *rand.Rand) error {
	tx, err := b.db.Begin(context.Background(), rng.IntN(2) == 0)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var first []bankAccount
	for range 1 + rng.IntN(8) {
		var now []bankAccount
		for a, err := range b.accounts.All(tx) {
			if err != nil {
				return err
			}
			now = append(now, a)
		}
		if first == nil {
			first = now
		}
		if !slices.Equal(first, now) {
			return fmt.Errorf("a snapshot shows %v, then %v", first, now)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
	}
	return nil
}
