package rekindle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// TestCloseUnderLoad closes a database while goroutines are in every kind of
// call: each call either works or says ErrClosed, and nothing is left running.
func TestCloseUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t)
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		fs := vfs.NewMem()
		db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10})
		closeUnderLoad(t, db, items)
		db, _ = openItems(t, fs, rekindle.Options{})
		_, err := db.CrossCheck(t.Context())
		require.NoError(t, err)
		require.NoError(t, db.Close(t.Context()))
	}
}

func closeUnderLoad(t *testing.T, db *rekindle.DB, items *rekindle.Table[item]) {
	ctx := context.Background()
	calls := []func(i int64) error{
		func(i int64) error {
			return db.Update(ctx, func(tx *rekindle.Tx) error { return items.Upsert(tx, &item{ID: i % 50, Name: string(rune(i % 50))}) })
		},
		func(i int64) error {
			return db.View(ctx, func(tx *rekindle.Tx) error {
				for _, err := range items.All(tx) {
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
		func(int64) error { return db.Checkpoint(ctx) },
		func(int64) error { _, err := db.CrossCheck(ctx); return err },
		func(int64) error { db.Stats(); _, err := db.Table("items"); return err },
		func(int64) error { _, err := rekindle.OpenTable[item](ctx, db, "more"); return err },
		func(i int64) error {
			tx, err := db.Begin(ctx, true)
			if err != nil {
				return err
			}
			return errors.Join(items.Upsert(tx, &item{ID: 100 + i%10, Name: string(rune(100 + i%10))}), tx.Rollback())
		},
	}
	var group sync.WaitGroup
	var started sync.WaitGroup
	for _, call := range calls {
		for range 2 {
			started.Add(1)
			group.Go(func() {
				for i := int64(0); ; i++ {
					err := call(i)
					if i == 1 {
						started.Done()
					}
					if errors.Is(err, rekindle.ErrClosed) {
						if i < 1 {
							started.Done()
						}
						return
					}
					if err != nil && !errors.Is(err, rekindle.ErrConflict) {
						t.Errorf("call: %v", err)
					}
				}
			})
		}
	}
	started.Wait()
	if err := db.Close(ctx); err != nil && !errors.Is(err, rekindle.ErrOpenTransactions) {
		t.Errorf("close: %v", err)
	}
	group.Wait()
}

// TestOneTransactionInTwoGoroutines: one of them is told, nothing is harmed.
func TestOneTransactionInTwoGoroutines(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	update(t, db, func(tx *rekindle.Tx) {
		for i := range int64(100) {
			require.NoError(t, items.Insert(tx, &item{ID: i, Name: string(rune('a' + i))}))
		}
	})
	tx, err := db.Begin(t.Context(), false)
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for i := range int64(2000) {
				rows, err := rekindle.OpenTable[item](context.Background(), db, "items")
				if err != nil {
					t.Error(err)
					return
				}
				row := item{Name: string(rune('a' + i%100))}
				err = rows.GetBy(tx, "name", &row)
				if err != nil && !errors.Is(err, rekindle.ErrTxBusy) {
					t.Error(err)
				}
				if err == nil && row.ID != i%100 {
					t.Errorf("row %d for key %d", row.ID, i%100)
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, tx.Rollback())
	require.NoError(t, db.Close(t.Context()))
}

func TestCancelledOpen(t *testing.T) {
	disk, want := lived(t)
	before := disk.Dump()
	for _, phase := range []string{"replay", "index/items"} {
		ctx, cancel := context.WithCancel(t.Context())
		o := rekindle.Options{Progress: func(p rekindle.Progress) {
			if p.Phase == phase {
				cancel()
			}
		}}
		_, err := rekindle.Open(ctx, "/db", o.OnFS(disk))
		require.ErrorIs(t, err, context.Canceled, phase)
		require.Equal(t, before, disk.Dump(), phase)
		cancel()
	}
	db, items := openItems(t, disk, rekindle.Options{})
	require.Equal(t, want, allItems(t, db, items))
	require.NoError(t, db.Close(t.Context()))
}

// TestCrossCheckEnds: with its context and with the database, also in the middle
// of a table.
func TestCrossCheckEnds(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{Durability: rekindle.None, CheckpointBytes: -1, IndexStrategy: "rebuild"})
	update(t, db, func(tx *rekindle.Tx) {
		for id := range int64(20_000) {
			require.NoError(t, items.Insert(tx, &item{ID: id, Name: string(rune(id))}))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := db.CrossCheck(ctx)
	require.ErrorIs(t, err, context.Canceled)
	ended := make(chan error)
	go func() {
		for {
			if _, err := db.CrossCheck(context.Background()); err != nil {
				ended <- err
				return
			}
		}
	}()
	time.Sleep(3 * time.Millisecond)
	require.NoError(t, db.Close(t.Context()))
	require.ErrorIs(t, <-ended, rekindle.ErrClosed)
}
