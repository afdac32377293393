package logstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// TestFailureAtEveryOperation fails each mutating operation in turn, by an
// error or by an fsync that loses its data. What was acknowledged is there
// afterwards; what was not is there entirely or not at all. The error came out,
// unless it was one of preparing space that nobody needed yet.
func TestFailureAtEveryOperation(t *testing.T) {
	for _, streams := range []int{1, 2} {
		for n := 1; failAt(t, streams, n); n++ {
		}
	}
}

func failAt(t *testing.T, streams, n int) (hit bool) {
	mem, h := newMem(t), newHistory()
	inj := errorfs.Count(errorfs.Then(
		errorfs.If(errorfs.All(errorfs.Mutating, errorfs.OnNth(n)), syscall.EIO),
		func(op vfs.Op) error {
			if op.Kind == vfs.OpDatasync {
				return mem.DropUnsynced(op.Path)
			}
			return nil
		}))
	o := testOptions(errorfs.Wrap(mem, inj), streams)
	l := openLog(t, o, Start{})
	for i := range 25 {
		err := h.run(l, job{id: uint64(i), parts: 1 + i%3, size: 4000}, uint32(i), i%4 != 0)
		if err == nil {
			continue
		}
		require.True(t, errors.Is(err, fault.ErrReadOnly) || errors.Is(err, fault.ErrCommitUnknown) || errors.Is(err, fault.ErrNoSpace), err)
		require.ErrorIs(t, err, errorfs.ErrInjected)
	}
	if l.Failed() != nil {
		checkFrozen(t, l, l.Durable())
	}
	require.NoError(t, l.Close(context.Background()))
	require.Zero(t, mem.Handles())
	strict := o
	strict.FS = mem.CrashClone(nil, vfs.Strict)
	h.check(t, strict)
	return inj.Injected() > 0
}

// checkFrozen: a failed log answers every question, and writes nothing.
func checkFrozen(t *testing.T, l *Log, durable uint64) {
	t.Helper()
	ctx := context.Background()
	_, err := l.Reserve(ctx, Request{Bytes: FrameBytes(0), Urgent: true})
	require.ErrorIs(t, err, fault.ErrReadOnly)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	_, err = l.Mark(ctx)
	require.ErrorIs(t, err, fault.ErrReadOnly)
	if l.Visible() > durable {
		require.ErrorIs(t, l.Flush(ctx), fault.ErrReadOnly)
	}
	require.Equal(t, durable, l.Durable())
}

// TestFailedSyncReleasesAllWaiters: 20 committers wait for a flush that fails.
func TestFailedSyncReleasesAllWaiters(t *testing.T) {
	mem := newMem(t)
	var armed atomic.Bool
	o := testOptions(errorfs.Wrap(mem, errorfs.Func(func(op vfs.Op) error {
		if armed.Load() && op.Kind == vfs.OpDatasync {
			time.Sleep(5 * time.Millisecond) // the others join the next round
			return syscall.EIO
		}
		return nil
	})), 1)
	l := openLog(t, o, Start{})
	h := newHistory()
	require.NoError(t, h.run(l, job{id: 1, parts: 1}, 0, true))
	settleSpace(t, l)
	durable := l.Durable()
	armed.Store(true)
	var wg sync.WaitGroup
	var unknown, refused atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			switch err := h.run(l, job{id: uint64(i), parts: 1, size: 100}, 0, i%3 != 0); {
			case errors.Is(err, fault.ErrCommitUnknown):
				unknown.Add(1)
			case errors.Is(err, fault.ErrReadOnly):
				refused.Add(1)
			default:
				require.NoError(t, err) // not waiting, and before the failure
			}
		})
	}
	wg.Wait()
	require.Positive(t, unknown.Load())
	require.Equal(t, durable, l.Durable())
	require.ErrorIs(t, l.Failed(), syscall.EIO)
	armed.Store(false)
	ops := mem.Ops()
	require.ErrorIs(t, h.run(l, makeJob(1), 0, true), fault.ErrReadOnly)
	require.Error(t, l.Flush(context.Background()))
	require.NoError(t, l.Close(context.Background()))
	require.Equal(t, ops, mem.Ops(), "nothing is written or synced after a failed sync")
}

// TestEveryErrorIsTold: beside the error that a log fails with others can come up, in
// another stream before it and anywhere after it. None is lost.
func TestEveryErrorIsTold(t *testing.T) {
	var text bytes.Buffer
	o := testOptions(nil, 2)
	full := errorfs.If(errorfs.All(errorfs.Kind(vfs.OpCreate), errorfs.PathGlob("00-*.log")), syscall.ENOSPC)
	broken := errorfs.If(errorfs.All(errorfs.Kind(vfs.OpCreate), errorfs.PathGlob("01-*.log")), fs.ErrExist)
	o.FS = errorfs.Wrap(newMem(t), errorfs.First(full, broken))
	o.Logger = slog.New(slog.NewTextHandler(&text, nil))
	l := openLog(t, o, Start{})
	_, _, err := write(l, Request{}, nil)
	require.ErrorIs(t, err, fault.ErrReadOnly)
	require.ErrorIs(t, err, fs.ErrExist)
	require.NotErrorIs(t, err, fault.ErrNoSpace)
	require.ErrorContains(t, err, "no space left")
	closeLog(t, l)

	l.fail(fmt.Errorf("a pass that was refused: %w", l.Failed()))
	require.NotContains(t, text.String(), "a pass that was refused")
	l.fail(errors.New("what a leader met beside it"))
	require.Contains(t, text.String(), "what a leader met beside it")
	require.ErrorIs(t, l.Failed(), fs.ErrExist, "the first error counts")
}

// TestReadingGoesOnAfterAFailure.
func TestReadingGoesOnAfterAFailure(t *testing.T) {
	mem := newMem(t)
	sw := errorfs.Toggle(errorfs.If(errorfs.Kind(vfs.OpWriteAt), syscall.EIO))
	l := openLog(t, testOptions(errorfs.Wrap(mem, sw), 1), Start{})
	h := newHistory()
	require.NoError(t, h.run(l, job{id: 1, parts: 1, size: 100}, 0, true))
	settleSpace(t, l)
	sw.On()
	require.ErrorIs(t, h.run(l, job{id: 2, parts: 1}, 0, true), fault.ErrCommitUnknown)
	rec, _, err := l.ReadAt(h.addresses[1][0], nil)
	require.NoError(t, err)
	requireRecord(t, job{id: 1, parts: 1, size: 100}.records(0)[0], rec)
	closeLog(t, l)
}

func TestClose(t *testing.T) {
	ctx := context.Background()
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, makeJob(1), 0, false))
	tk, _, err := write(l, Request{}, makeJob(2).records(0))
	require.NoError(t, err)
	h.note(tk.CTS, job{id: 2, parts: 1, size: makeJob(2).size}, nil)
	go func() {
		time.Sleep(2 * time.Millisecond)
		l.Publish(tk)
	}()
	require.NoError(t, l.Close(ctx))
	require.Equal(t, tk.CTS, l.Durable(), "Close waits for what was reserved")
	require.ErrorIs(t, l.Close(ctx), fault.ErrClosed)
	_, err = l.Reserve(ctx, Request{Bytes: FrameBytes(0)})
	require.ErrorIs(t, err, fault.ErrClosed)
	_, _, err = l.ReadAt(h.addresses[1][0], nil)
	require.ErrorIs(t, err, fault.ErrClosed)
	require.NoError(t, l.WaitDurable(ctx, tk.Round))
	require.ErrorIs(t, l.WaitDurable(ctx, tk.Round+1), fault.ErrCommitUnknown)
	require.NoError(t, l.Flush(ctx))
	require.Zero(t, mem.Handles())
	_, n := plainScan(t, o)
	require.Equal(t, 2, n)
}

// TestCloseAmongCommitters: everybody gets an answer, and the log has what it
// promised.
func TestCloseAmongCommitters(t *testing.T) {
	for round := range 20 {
		mem, h := newMem(t), newHistory()
		o := testOptions(mem, 2)
		l := openLog(t, o, Start{})
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for {
					err := h.run(l, h.newJob(), uint32(w), w%2 == 0)
					if errors.Is(err, fault.ErrClosed) || errors.Is(err, fault.ErrCommitUnknown) {
						return
					}
					require.NoError(t, err)
				}
			})
		}
		time.Sleep(time.Duration(round) * 100 * time.Microsecond)
		require.NoError(t, l.Close(context.Background()))
		wg.Wait()
		require.Zero(t, mem.Handles())
		o.FS = mem.CrashClone(nil, vfs.Strict)
		h.check(t, o)
	}
}

func TestInvalidOptions(t *testing.T) {
	good := testOptions(newMem(t), 1)
	for name, change := range map[string]func(*Options){
		"no file system":    func(o *Options) { o.FS = nil },
		"streams":           func(o *Options) { o.Streams = 64 },
		"segment size":      func(o *Options) { o.SegmentBytes = 100_000 },
		"unflushed little":  func(o *Options) { o.MaxUnflushed = 1 },
		"unflushed much":    func(o *Options) { o.MaxUnflushed = MaxRoundBytes + 1 },
		"mode":              func(o *Options) { o.Durability.Mode = 9 },
		"interval missing":  func(o *Options) { o.Durability.Mode = Interval },
		"streams of before": func(o *Options) { o.Streams = 3 },
	} {
		o := good
		change(&o)
		_, err := Open(o, Start{Ends: []Position{0}})
		require.ErrorIs(t, err, fault.ErrInvalidOptions, name)
	}
	require.Equal(t, "sync interval none mode 9", fmt.Sprint(Sync, Interval, None, Mode(9)))
}
