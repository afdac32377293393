package logstream

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Leader commit: a committer that finds nobody flushing closes the open round
// and flushes it in its own goroutine. Those who come meanwhile join the next
// round, and one of them leads it when the flush ends, or a new committer that
// comes first. One flush runs at a time, so at most one round is written and
// not durable.
//
// After a round of several commits the leader yields once before it closes the
// next one. Otherwise those whom that flush has just released would find the
// round closed, and the writers would split into two halves that take turns,
// each paying twice as many syncs.

// errFailed says that the log failed before a round became durable.
var errFailed = errors.New("log failed")

// WaitDurable returns when round is durable. It leads the flush if nobody
// does. When ctx ends or the log fails first, the outcome of the round's
// commits is unknown: fault.ErrCommitUnknown, which wraps the cause.
func (l *Log) WaitDurable(ctx context.Context, round uint64) error {
	err := l.await(ctx, round)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", fault.ErrCommitUnknown, l.cause(err))
}

// Flush makes everything durable that was reserved before the call. It must
// not be called between Reserve and Publish.
func (l *Log) Flush(ctx context.Context) error {
	l.latch.Lock()
	round := l.open.number
	if l.open.empty() {
		round-- // which may be the one that is being flushed
	}
	l.latch.Unlock()
	if err := l.await(ctx, round); err != nil {
		return l.reserveError(err)
	}
	return nil
}

func (l *Log) cause(err error) error {
	if errors.Is(err, errFailed) {
		return l.Failed()
	}
	return err
}

// await returns nil when round is durable, errFailed or the error of ctx when
// that came first.
func (l *Log) await(ctx context.Context, round uint64) error {
	for {
		if l.durableRound.Load() >= round {
			return nil
		}
		room, err := l.join(round)
		if room == nil {
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-room.done:
		case <-room.lead:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join leads the flush of round, or returns the room in which to wait for it.
func (l *Log) join(round uint64) (*waitingRoom, error) {
	l.latch.Lock()
	switch {
	case l.durableRound.Load() >= round:
		l.latch.Unlock()
		return nil, nil
	case l.failure.Load() != nil:
		l.latch.Unlock()
		return nil, errFailed
	case l.seized || round > l.open.number || round == l.open.number && l.open.empty():
		l.latch.Unlock()
		return nil, fault.ErrClosed // or a round that nobody has a place in
	case l.leading:
		defer l.latch.Unlock()
		if round < l.open.number {
			return l.flushing.wait(), nil
		}
		return l.open.wait(), nil
	}
	l.leading = true
	gather := l.crowded
	l.latch.Unlock()
	if gather {
		runtime.Gosched() // those whom the last flush released come into this round
	}
	l.lead()
	return nil, nil
}

// closeRound ends the open round for the leader and opens the next one.
func (l *Log) closeRound() *openRound {
	l.latch.Lock()
	defer l.latch.Unlock()
	r, next := l.open, l.flushing
	for s := range streamSet(r.participants) {
		l.tails[s] = r.parts[s].base + Position(alignSector(r.parts[s].used))
	}
	next.reset(r.number+1, l.tails, l.bufferLimit())
	l.crowded = r.last > r.first
	l.open, l.flushing = next, r
	return r
}

// bufferLimit bounds the buffer of a round: the open round and the one that is
// being flushed share MaxUnflushed.
func (l *Log) bufferLimit() int { return l.opt.MaxUnflushed / 2 &^ (sectorBytes - 1) }

// lead closes the open round and flushes it. Its copiers are done when its
// last CTS is visible.
func (l *Log) lead() {
	r := l.closeRound()
	l.ring.wait(r.last)
	if l.failure.Load() == nil {
		if err := l.write(r); err != nil {
			l.fail(err)
		}
	}
	l.finish(r)
}

// write writes and syncs the round in all its streams in parallel.
func (l *Log) write(r *openRound) error {
	if bits.OnesCount64(r.participants) == 1 {
		return l.writePart(r, bits.TrailingZeros64(r.participants))
	}
	var wg sync.WaitGroup
	errs := make([]error, len(l.streams))
	for s := range streamSet(r.participants) {
		wg.Go(func() { errs[s] = l.writePart(r, s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *Log) writePart(r *openRound, stream int) error {
	b := r.seal(&l.codec, &l.current, stream)
	l.counters.bytes.Add(uint64(len(b)))
	s := l.streams[stream]
	if err := s.Append(b, r.parts[stream].base); err != nil {
		return err
	}
	return s.Sync()
}

// finish ends the flush and hands the lead on. A log that failed meanwhile, in
// whatever place, does not believe the flush: the error may have been reported
// there instead of here.
func (l *Log) finish(r *openRound) {
	l.latch.Lock()
	defer l.latch.Unlock()
	l.leading = false
	if l.failure.Load() != nil {
		l.dismiss(r)
		return
	}
	for i, end := range l.open.starts {
		l.durableEnds[i].Store(uint64(end))
	}
	l.durableCTS.Store(r.last) // before the round: whose commit is acknowledged, sees it
	l.durableRound.Store(r.number)
	l.oldest.Store(l.open.opened)
	l.counters.rounds.Add(1)
	l.forgetGroups(r.number)
	l.dismiss(r)
	if room := l.open.room; room != nil {
		room.lead <- struct{}{} // nobody led the open round yet, so it is empty
	}
}
