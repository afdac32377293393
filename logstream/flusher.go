package logstream

import (
	"context"
	"time"
)

const (
	flushDelay = 10 * time.Millisecond // how long a round waits for somebody to flush it
	eagerBytes = 256 << 10             // with so much it does not wait
)

// flusher is the background goroutine that flushes what nobody waits for. It
// is asleep, without a timer, when nothing is to be flushed.
type flusher struct {
	delay time.Duration
	wake  chan struct{}
	ctx   context.Context // of the goroutine's own waits
	stop  context.CancelFunc
	done  chan struct{}

	// Guarded by the commit latch.
	awake bool // it will look at the open round without being woken
	hurry bool // it was told that the open round is large
}

func (f *flusher) start(l *Log) {
	f.delay = flushDelay
	if d := l.opt.Durability; d.Mode == Interval {
		f.delay = min(f.delay, d.Interval/2)
	}
	f.wake = make(chan struct{}, 1)
	f.done = make(chan struct{})
	f.ctx, f.stop = context.WithCancel(context.Background())
	go l.flushLoop()
}

func (f *flusher) close() {
	f.stop()
	<-f.done
}

// noteFirst is called with the first frame of a round, under the latch.
func (f *flusher) noteFirst() {
	f.hurry = false
	if !f.awake {
		f.awake = true
		signal(f.wake)
	}
}

// noteBytes is called with the bytes of the open round, under the latch.
func (f *flusher) noteBytes(n int) {
	if n >= eagerBytes && !f.hurry {
		f.hurry = true
		signal(f.wake)
	}
}

// signal leaves a token in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Log) flushLoop() {
	f := &l.flusher
	defer close(f.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for f.ctx.Err() == nil {
		round, wait := l.flushDue()
		switch {
		case round == 0:
			timer.Stop()
		case wait > 0:
			timer.Reset(wait)
		default:
			_ = l.await(f.ctx, round) // a failure is kept in the log
			continue
		}
		select {
		case <-f.wake:
		case <-timer.C:
		case <-f.ctx.Done():
		}
	}
}

// flushDue returns the open round and how long it may still wait for somebody
// else; 0 if there is nothing to flush, and then the flusher goes to sleep.
func (l *Log) flushDue() (round uint64, wait time.Duration) {
	l.latch.Lock()
	defer l.latch.Unlock()
	if l.open.empty() || l.failure.Load() != nil {
		l.flusher.awake = false
		return 0, 0
	}
	if l.open.bytes() < eagerBytes {
		wait = l.flusher.delay - time.Duration(l.now()-l.open.opened)
	}
	return l.open.number, max(wait, 0)
}
