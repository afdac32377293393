package logstream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// syncCounter counts the syncs of a file system and can hold them up.
type syncCounter struct {
	vfs.FS
	syncs atomic.Int64
	gate  atomic.Pointer[chan struct{}]
}

func countSyncs(fsys vfs.FS) *syncCounter {
	c := &syncCounter{}
	c.FS = vfs.Wrap(fsys, func(op vfs.Op, do func(vfs.Op) error) error {
		if op.Kind == vfs.OpDatasync {
			if gate := c.gate.Load(); gate != nil {
				<-*gate
			}
			c.syncs.Add(1)
		}
		return do(op)
	})
	return c
}

// hold makes syncs wait until the returned function is called.
func (c *syncCounter) hold() (release func()) {
	gate := make(chan struct{})
	c.gate.Store(&gate)
	return sync.OnceFunc(func() {
		c.gate.Store(nil)
		close(gate)
	})
}

// openCounted is a log that has begun and has all the space it wants.
func openCounted(t *testing.T, d Durability) (*Log, *syncCounter) {
	t.Helper()
	fsys := countSyncs(newMem(t))
	o := testOptions(fsys, 1)
	o.SegmentBytes, o.MaxUnflushed, o.Durability = 4<<20, 0, d
	l := openLog(t, o, Start{})
	require.NoError(t, newHistory().run(l, job{id: 1, parts: 1}, 0, true))
	settleSpace(t, l)
	fsys.syncs.Store(0)
	return l, fsys
}

// put commits up to Publish.
func put(t testing.TB, l *Log, size int) Ticket {
	t.Helper()
	tk, _, err := write(l, Request{}, []Record{{Kind: Insert, Payload: make([]byte, size)}})
	require.NoError(t, err)
	l.Publish(tk)
	return tk
}

func TestOneWriterPaysOneSync(t *testing.T) {
	l, fsys := openCounted(t, Durability{})
	before := l.Stats().Rounds
	for i := range 50 {
		tk := put(t, l, 100)
		require.NoError(t, l.Acknowledge(context.Background(), tk, true))
		require.Equal(t, tk.CTS, l.Durable())
		require.Equal(t, tk.CTS, l.Visible())
		require.Equal(t, int64(i+1), fsys.syncs.Load())
	}
	require.Equal(t, uint64(50), l.Stats().Rounds-before)
	closeLog(t, l)
}

// TestWritersShareSyncs: those who come during a flush share the next one.
func TestWritersShareSyncs(t *testing.T) {
	l, fsys := openCounted(t, Durability{})
	release := fsys.hold()
	var wg sync.WaitGroup
	commit := func() {
		wg.Go(func() { require.NoError(t, l.Acknowledge(context.Background(), put(t, l, 100), true)) })
	}
	commit()
	require.Eventually(t, func() bool { l.latch.Lock(); defer l.latch.Unlock(); return l.leading }, 5*time.Second, time.Millisecond)
	for range 100 {
		commit()
	}
	require.Eventually(t, func() bool { return l.Visible() == 102 }, 5*time.Second, time.Millisecond)
	require.Equal(t, uint64(1), l.Durable())
	release()
	wg.Wait()
	require.Equal(t, int64(2), fsys.syncs.Load())
	require.Equal(t, uint64(102), l.Durable())
	closeLog(t, l)
}

func TestVisibleFollowsTheCommitOrder(t *testing.T) {
	l, _ := openCounted(t, Durability{Mode: None})
	var tickets []Ticket
	for range 5 {
		tk, _, err := write(l, Request{}, nil)
		require.NoError(t, err)
		tickets = append(tickets, tk)
	}
	base := l.Visible()
	for _, i := range []int{3, 1, 4} {
		l.Publish(tickets[i])
		require.Equal(t, base, l.Visible())
	}
	l.Publish(tickets[0])
	require.Equal(t, base+2, l.Visible())
	l.WaitVisible(base + 2)
	done := make(chan struct{})
	go func() {
		l.WaitVisible(base + 5)
		close(done)
	}()
	l.Publish(tickets[2])
	<-done
	require.Equal(t, base+5, l.Visible())
	closeLog(t, l)
}

func TestModeNoneDoesNotWait(t *testing.T) {
	l, fsys := openCounted(t, Durability{Mode: None})
	release := fsys.hold()
	var last Ticket
	for range 100 {
		last = put(t, l, 100)
		require.NoError(t, l.Acknowledge(context.Background(), last, false))
	}
	require.Less(t, l.Durable(), last.CTS)
	release()
	require.Eventually(t, func() bool { return l.Durable() == last.CTS }, 5*time.Second, time.Millisecond, "the flusher flushes")
	closeLog(t, l)
}

// TestModeNoneFlushesWhatIsLarge before its delay is over.
func TestModeNoneFlushesWhatIsLarge(t *testing.T) {
	l, _ := openCounted(t, Durability{Mode: None})
	l.latch.Lock()
	l.flusher.delay = time.Hour
	l.latch.Unlock()
	var last Ticket
	for range 30 {
		last = put(t, l, 10_000)
		require.NoError(t, l.Acknowledge(context.Background(), last, false))
	}
	require.Eventually(t, func() bool { return l.Durable() > 20 }, 5*time.Second, time.Millisecond)
	closeLog(t, l)
	require.Equal(t, last.CTS, l.Durable())
}

func TestModeInterval(t *testing.T) {
	const interval = 20 * time.Millisecond
	l, fsys := openCounted(t, Durability{Mode: Interval, Interval: interval})
	first := put(t, l, 100)
	require.NoError(t, l.Acknowledge(context.Background(), first, false))
	require.Eventually(t, func() bool { return l.Durable() == first.CTS }, 5*time.Second, time.Millisecond)

	release := fsys.hold()
	defer release()
	oldest := put(t, l, 100)
	start := time.Now()
	require.NoError(t, l.Acknowledge(context.Background(), oldest, false))
	time.Sleep(2*interval - time.Since(start))
	late := put(t, l, 100)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err := l.Acknowledge(ctx, late, false)
	require.ErrorIs(t, err, fault.ErrCommitUnknown, "it waits while the oldest commit is overdue")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	release()
	require.NoError(t, l.Acknowledge(context.Background(), late, true))

	again := fsys.hold()
	defer again()
	ctx, cancel = context.WithTimeout(context.Background(), 0)
	defer cancel()
	require.NoError(t, l.Acknowledge(ctx, put(t, l, 100), false), "the overdue ones are durable, this one is young")
	again()
	closeLog(t, l)
}

// TestFlusherSleeps: it is not awake, and has no timer, when nothing is to be
// flushed; commits that wait do not need it.
func TestFlusherSleeps(t *testing.T) {
	l, fsys := openCounted(t, Durability{})
	asleep := func() bool {
		l.latch.Lock()
		defer l.latch.Unlock()
		return !l.flusher.awake
	}
	require.Eventually(t, asleep, 5*time.Second, time.Millisecond)
	syncs := fsys.syncs.Load()
	time.Sleep(3 * flushDelay)
	require.True(t, asleep())
	require.Equal(t, syncs, fsys.syncs.Load())
	tk := put(t, l, 100) // nobody waits for it
	require.False(t, asleep())
	require.Eventually(t, func() bool { return l.Durable() == tk.CTS && asleep() }, 5*time.Second, time.Millisecond)
	closeLog(t, l)
}

func TestContextEndsTheWait(t *testing.T) {
	l, fsys := openCounted(t, Durability{})
	release := fsys.hold()
	leader := make(chan error)
	go func() { leader <- l.Acknowledge(context.Background(), put(t, l, 100), true) }()
	require.Eventually(t, func() bool { l.latch.Lock(); defer l.latch.Unlock(); return l.leading }, 5*time.Second, time.Millisecond)

	cause := errors.New("user is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	tk := put(t, l, 100)
	err := l.Acknowledge(ctx, tk, true)
	require.ErrorIs(t, err, fault.ErrCommitUnknown)
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, l.Visible(), tk.CTS, "it is visible all the same")
	require.ErrorIs(t, l.WaitDurable(ctx, tk.Round-1), fault.ErrCommitUnknown)
	require.ErrorIs(t, l.Flush(ctx), context.Canceled)
	release()
	require.NoError(t, <-leader)
	require.Eventually(t, func() bool { return l.Durable() == tk.CTS }, 5*time.Second, time.Millisecond, "the flusher takes over what nobody leads")
	require.NoError(t, l.WaitDurable(ctx, tk.Round))
	closeLog(t, l)
}

type recorder struct {
	seen []uint64
	err  error
}

func (r *recorder) Validate(cts uint64) error {
	r.seen = append(r.seen, cts)
	return r.err
}

func TestValidateRunsOnceWithTheCTS(t *testing.T) {
	l, _ := openCounted(t, Durability{})
	v := &recorder{}
	tk, _, err := write(l, Request{Validate: v}, nil)
	require.NoError(t, err)
	l.Publish(tk)
	require.Equal(t, []uint64{tk.CTS}, v.seen)
	v.err = errRefused
	before := l.Stats()
	_, _, err = write(l, Request{Validate: v}, nil)
	require.Equal(t, errRefused, err)
	require.Equal(t, []uint64{tk.CTS, tk.CTS + 1}, v.seen)
	require.Equal(t, before, l.Stats())
	again := put(t, l, 0)
	require.Equal(t, tk.CTS+1, again.CTS, "nothing was taken")
	closeLog(t, l)
}

// TestReserveWaitsAtTheBound: not more than MaxUnflushed is buffered; a Reserve
// behind that flushes, or waits for the flush.
func TestReserveWaitsAtTheBound(t *testing.T) {
	fsys := countSyncs(newMem(t))
	o := testOptions(fsys, 1)
	o.MaxUnflushed = minUnflushed
	o.Durability.Mode = None
	l := openLog(t, o, Start{})
	put(t, l, 10)
	settleSpace(t, l)
	require.NoError(t, l.Flush(context.Background()))
	release := fsys.hold()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	bytes := 0
	for {
		tk, err := l.Reserve(ctx, Request{Bytes: FrameBytes(RecordBytes(0, 1000))})
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			break
		}
		enc := l.Encode(&tk)
		enc.Append(Insert, 1, 0, nil, make([]byte, 1000))
		enc.Finish()
		l.Publish(tk)
		if bytes += len(tk.Buf); bytes > minUnflushed/2-2000 {
			// The next ones would lead a flush, which hangs: let the flusher do that.
			require.Eventually(t, func() bool { l.latch.Lock(); defer l.latch.Unlock(); return l.leading }, 5*time.Second, time.Millisecond)
		}
	}
	require.LessOrEqual(t, bytes, minUnflushed)
	require.Greater(t, bytes, minUnflushed/2)
	release()
	put(t, l, 1000)
	closeLog(t, l)
}

// TestTooManyUnpublished: Reserve waits when the ring of marks is full.
func TestTooManyUnpublished(t *testing.T) {
	l, _ := openCounted(t, Durability{Mode: None})
	l.latch.Lock() // all of them must fit into a round, because none can be flushed
	for _, r := range []*openRound{l.open, l.flushing} {
		r.parts[0].buf = make([]byte, ringSize*(frmHeader+8))
	}
	l.latch.Unlock()
	var tickets []Ticket
	for range ringSize {
		tk, _, err := write(l, Request{}, nil)
		require.NoError(t, err)
		tickets = append(tickets, tk)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := l.Reserve(ctx, Request{Bytes: FrameBytes(0)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, tk := range tickets {
		l.Publish(tk)
	}
	put(t, l, 10)
	require.Equal(t, tickets[0].CTS+ringSize, l.Visible())
	closeLog(t, l)
}

// TestSlowSpaceIsWaitedFor: a commit that needs space waits for the preparer.
func TestSlowSpaceIsWaitedFor(t *testing.T) {
	mem, h := newMem(t), newHistory()
	gate := make(chan struct{})
	slow := errorfs.Wrap(mem, errorfs.Func(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate {
			<-gate
		}
		return nil
	}))
	l := openLog(t, testOptions(slow, 1), Start{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := l.Reserve(ctx, Request{Bytes: FrameBytes(0)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(gate)
	for i := range 60 {
		require.NoError(t, h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true))
	}
	closeLog(t, l)
	h.check(t, testOptions(mem, 1))
}
