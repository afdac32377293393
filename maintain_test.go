package rekindle_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

func insertItem(t *testing.T, db *rekindle.DB, items *rekindle.Table[item], id int64, note string) error {
	t.Helper()
	return db.Update(t.Context(), func(tx *rekindle.Tx) error {
		return items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id), Note: &note})
	})
}

// TestCheckpointGivenUp: a checkpoint that its caller gives up is no reason to
// refuse writers, with automatic checkpoints or without.
func TestCheckpointGivenUp(t *testing.T) {
	for _, bytes := range []int64{-1, 1, 0} {
		db, items := openItems(t, vfs.NewMem(), rekindle.Options{CheckpointBytes: bytes})
		require.NoError(t, insertItem(t, db, items, 1, ""))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 30 {
			_ = db.Checkpoint(ctx)
		}
		require.NoError(t, db.Stats().CheckpointFailure)
		require.NoError(t, insertItem(t, db, items, 2, ""))
		require.NoError(t, db.Close(t.Context()))
	}
}

// checkpointsFail is a file system on which checkpoints cannot be written while
// broken is true.
func checkpointsFail(broken *atomic.Bool) vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.Func(func(op vfs.Op) error {
		if broken.Load() && strings.Contains(op.Path, "ckpt") && op.Kind.Mutates() {
			return syscall.ENOSPC
		}
		return nil
	}))
}

// TestHugeCheckpointBytes: a bound that no log reaches neither slows writers down nor
// refuses them, though multiples of it are beyond an int64.
func TestHugeCheckpointBytes(t *testing.T) {
	for _, bytes := range []int64{math.MaxInt64, 1 << 62, 1 << 61, 1 << 60} {
		var broken atomic.Bool
		db, items := openItems(t, checkpointsFail(&broken), rekindle.Options{CheckpointBytes: bytes})
		require.NoError(t, insertItem(t, db, items, 1, ""))
		require.Zero(t, db.TailCrowding(), "%d", bytes)
		require.NoError(t, db.Checkpoint(t.Context()))
		require.Zero(t, db.Crowding(), "%d", bytes)
		require.NoError(t, insertItem(t, db, items, 2, ""))
		broken.Store(true)
		require.ErrorIs(t, db.Checkpoint(t.Context()), syscall.ENOSPC)
		require.NoError(t, insertItem(t, db, items, 3, ""), "%d", bytes)
		broken.Store(false)
		require.NoError(t, db.Close(t.Context()))
	}
}

// TestCheckpointsFail: without automatic checkpoints a failed one refuses
// nobody; with them writers are refused when the tail has become too long, and
// no longer once checkpoints work again, though nobody asks for one.
func TestCheckpointsFail(t *testing.T) {
	var broken atomic.Bool
	open := func(bytes int64) (*rekindle.DB, *rekindle.Table[item]) {
		broken.Store(false)
		db, items := openItems(t, checkpointsFail(&broken), rekindle.Options{CheckpointBytes: bytes})
		broken.Store(true)
		return db, items
	}
	db, items := open(-1)
	require.NoError(t, insertItem(t, db, items, 0, ""))
	require.ErrorIs(t, db.Checkpoint(t.Context()), syscall.ENOSPC)
	require.ErrorIs(t, db.Stats().CheckpointFailure, syscall.ENOSPC)
	require.NoError(t, insertItem(t, db, items, 1, ""))
	require.ErrorIs(t, db.Close(t.Context()), syscall.ENOSPC)

	db, items = open(1 << 10)
	note := strings.Repeat("x", 100)
	var err error
	id := int64(0)
	for ; err == nil; id++ {
		err = insertItem(t, db, items, id, note)
		require.Less(t, id, int64(5000), "writers are never refused")
		time.Sleep(50 * time.Microsecond)
	}
	require.ErrorIs(t, err, rekindle.ErrCheckpointStalled)
	require.ErrorIs(t, err, syscall.ENOSPC)
	broken.Store(false)
	for start := time.Now(); err != nil; {
		require.Less(t, time.Since(start), 10*time.Second, "still refused: %v", err)
		time.Sleep(time.Millisecond)
		err = insertItem(t, db, items, id, note)
	}
	require.NoError(t, db.Close(t.Context()))
}

// TestTailBeforeOpen: the tail that recovery replays counts towards the next
// checkpoint, so a process that dies again and again does not make it longer
// and longer.
func TestTailBeforeOpen(t *testing.T) {
	fs := vfs.NewMem()
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: 32 << 10}
	id := int64(0)
	for round := range 5 {
		db, items := openItems(t, fs, o)
		require.LessOrEqual(t, db.RecoveryReport().RecordsReplayed, int64(81), "round %d", round)
		for range 80 {
			require.NoError(t, insertItem(t, db, items, id, strings.Repeat("x", 400)))
			id++
		}
		deadline := time.Now().Add(5 * time.Second)
		for round > 0 && db.Stats().CheckpointCTS == db.RecoveryReport().TSc && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		killed := fs.CrashClone(nil, vfs.Kill)
		require.NoError(t, db.Close(t.Context()))
		fs = killed
	}
}

// TestNoTailAfterClose: what no commit has waited for is in the last checkpoint.
func TestNoTailAfterClose(t *testing.T) {
	for _, d := range []rekindle.Durability{rekindle.None, rekindle.Interval(time.Second), rekindle.Sync} {
		fs := vfs.NewMem()
		db, items := openItems(t, fs, rekindle.Options{Durability: d})
		for id := range int64(100) {
			require.NoError(t, insertItem(t, db, items, id, ""))
		}
		require.NoError(t, db.Close(t.Context()))
		db, _ = openItems(t, fs, rekindle.Options{})
		require.Zero(t, db.RecoveryReport().RecordsReplayed, "durability %v", d)
		require.NoError(t, db.Close(t.Context()))
	}
}

// TestCheckpointIsNoTransaction: the snapshot that a checkpoint holds is not
// one of the open transactions, and Close does not wait for it as for one.
func TestCheckpointIsNoTransaction(t *testing.T) {
	reached, goOn := make(chan bool, 1), make(chan bool)
	slow := errorfs.Func(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.Contains(op.Path, "array") {
			select {
			case reached <- true:
			default:
			}
			<-goOn
		}
		return nil
	})
	db, items := openItems(t, errorfs.Wrap(vfs.NewMem(), slow), rekindle.Options{})
	require.NoError(t, insertItem(t, db, items, 1, ""))
	done := make(chan error)
	go func() { done <- db.Checkpoint(context.Background()) }()
	<-reached
	require.Zero(t, db.Stats().OpenTransactions)
	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, db.Close(t.Context()))
}

// TestGoroutineLeftBehind: a transaction function that returns while another
// goroutine is inside of a call does not leave its transaction open.
func TestGoroutineLeftBehind(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	require.NoError(t, insertItem(t, db, items, 1, ""))
	for range 20 {
		ended := make(chan bool)
		require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
			started := make(chan bool)
			go func() {
				defer close(ended)
				for i := 0; items.Get(tx, &item{ID: 1}) == nil; i++ {
					if i == 0 {
						close(started)
					}
				}
			}()
			<-started
			return nil
		}))
		require.Zero(t, db.Stats().OpenTransactions)
		<-ended
	}
	require.NoError(t, db.Close(t.Context()))
}
