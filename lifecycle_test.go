package rekindle_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var closeRounds = flag.Int("close.rounds", 2, "rounds of TestCloseUnderLoad for each strategy and file system")

const callers = 32

// TestCloseUnderLoad closes a database while goroutines are in every call of the
// API: each call does what it should or says ErrClosed, what was acknowledged is
// there afterwards, and nothing is left running. For more: -close.rounds 125.
func TestCloseUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			for round := range *closeRounds {
				closeUnderLoad(t, vfs.NewMem(), "/db", strategy, round)
				closeUnderLoad(t, vfs.OS(), filepath.Join(t.TempDir(), "db"), strategy, round)
			}
		})
	}
}

func closeUnderLoad(t *testing.T, fs vfs.FS, dir, strategy string, round int) {
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: 16 << 10, IndexStrategy: strategy, LogStreams: 1 + round%2}
	if round%3 == 1 {
		o.MemoryBudget = 1
	}
	h := openHandles(t, fs, dir, o)
	l := &load{t: t, acked: make([]int32, callers)}
	for i := range callers {
		l.group.Go(func() { l.call(*h, i, round) })
	}
	time.Sleep(time.Duration(1+round*5%23) * time.Millisecond)
	ctx := t.Context()
	if round%4 == 3 {
		ctx = ended(t)
	}
	switch err := h.db.Close(ctx); {
	case err == nil, errors.Is(err, rekindle.ErrOpenTransactions), ctx.Err() != nil && errors.Is(err, context.Canceled):
	case errors.Is(err, rekindle.ErrClosed): // by one of the callers
	default:
		t.Errorf("close: %v", err)
	}
	l.group.Wait()
	l.check(openHandles(t, fs, dir, rekindle.Options{}))
}

// load is callers that go through the API until the database is closed.
type load struct {
	t     *testing.T
	group sync.WaitGroup
	acked []int32 // per caller: the last group of its own row that was committed
}

// call makes one call after the other, each caller from another one on.
func (l *load) call(h handles, caller, round int) {
	calls := api()
	names := slices.Sorted(maps.Keys(calls))
	for i := caller * 7; ; i++ {
		name := names[i%len(names)]
		if name == "DB.Close" && (caller > 3 || i < 10*len(names) || round%2 == 0) {
			continue
		}
		h.id = int64(caller%8 + 1)
		h.tx = nil
		err := l.count(&h, caller)
		if err == nil && inTransaction(name) {
			err = l.inTransaction(&h, calls[name], i%3 != 0)
		} else if err == nil {
			err = calls[name](&h)
		}
		if errors.Is(err, rekindle.ErrClosed) {
			return
		}
		if err != nil && !expected(err) {
			l.t.Errorf("%s: %v", name, err)
			return
		}
	}
}

func expected(err error) bool {
	for _, kind := range []error{rekindle.ErrConflict, rekindle.ErrDuplicateKey, rekindle.ErrNotFound, rekindle.ErrTxReadOnly, rekindle.ErrTxDone} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// inTransaction makes a call in a transaction and ends that if the call has not.
func (l *load) inTransaction(h *handles, call func(*handles) error, writable bool) error {
	if err := h.begin(writable); err != nil {
		return err
	}
	err := call(h)
	end := h.tx.Rollback
	if writable && err == nil {
		end = func() error { return h.tx.Commit(h.ctx) }
	}
	if endErr := end(); !errors.Is(endErr, rekindle.ErrTxDone) {
		err = errors.Join(err, endErr)
	}
	return err
}

// count writes the next number into the caller's own row.
func (l *load) count(h *handles, caller int) error {
	next := l.acked[caller] + 1
	err := h.db.Update(h.ctx, func(tx *rekindle.Tx) error {
		return h.items.Upsert(tx, &item{ID: int64(1000 + caller), Name: fmt.Sprint("caller ", caller), Group: next})
	})
	if err == nil {
		l.acked[caller] = next
	}
	return err
}

// check makes sure that what each caller was told is what the next life finds.
func (l *load) check(h *handles) {
	_, err := h.db.CrossCheck(l.t.Context())
	require.NoError(l.t, err)
	require.NoError(l.t, h.db.View(l.t.Context(), func(tx *rekindle.Tx) error {
		for caller, acked := range l.acked {
			row := item{ID: int64(1000 + caller)}
			if err := h.items.Get(tx, &row); acked > 0 || !errors.Is(err, rekindle.ErrNotFound) {
				require.NoError(l.t, err)
			}
			require.Equal(l.t, acked, row.Group, "caller %d", caller)
		}
		return nil
	}))
	require.NoError(l.t, h.db.Close(l.t.Context()))
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

// TestCloseOfNothing: a DB that Open did not make has nothing to wait for.
func TestCloseOfNothing(t *testing.T) {
	var db rekindle.DB
	require.ErrorIs(t, db.Close(context.Background()), rekindle.ErrClosed)
}
