package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
)

// How often a life looks at what the engine does, and waits for the disk.
const (
	watchEvery  = 2 * time.Millisecond
	settleEvery = 7 * time.Millisecond
)

// liver is a life under way.
type liver struct {
	*Life
	*teller
	db      *rekindle.DB
	clients clients
	stop    atomic.Bool // asks the clients to
	closing atomic.Bool // what fails from now on may fail because of that
}

// live opens the database and runs the clients on it. It returns after the
// database was closed, or with an error; it is made to be killed.
func live(ctx context.Context, l Life, out io.Writer) error {
	v := &liver{Life: &l, teller: newTeller(out)}
	v.phase(Starting)
	options := l.Options.engine(&l.Database)
	if l.Convert != "" {
		return v.convert(ctx, options)
	}
	options.Progress = func(p rekindle.Progress) { _ = v.tell(message{Phase: Opening, Step: p.Phase}) }
	v.phase(Opening)
	var err error
	if v.db, err = rekindle.Open(ctx, l.Database.Dir, options); err != nil {
		return err
	}
	v.phase(Running)
	if v.clients, err = openClients(ctx, v.db, &l); err != nil {
		return err
	}
	return v.run(ctx)
}

func (v *liver) convert(ctx context.Context, o *rekindle.Options) error {
	v.phase(Converting)
	if err := rekindle.Convert(ctx, v.Database.Dir, v.Convert, o); err != nil {
		return err
	}
	v.phase(Closed)
	return nil
}

// run returns the first error of whatever runs, or nil once all is closed.
func (v *liver) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work, clients sync.WaitGroup
	start := func(group *sync.WaitGroup, what string, f func(context.Context) error) {
		group.Go(func() {
			if err := f(ctx); err != nil && !v.excused(err) {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for i := range int32(v.Database.Clients) {
		start(&clients, fmt.Sprintf("client %d", i), func(ctx context.Context) error { return v.client(ctx, i) })
	}
	start(&work, "watch", v.watch)
	if len(v.Maintain) > 0 {
		start(&work, "maintenance", v.maintain)
	}
	if v.Options.Durability != rekindle.Sync {
		start(&work, "settle", v.settle)
	}
	if v.CloseAfter > 0 {
		start(&work, "close", func(ctx context.Context) error { return v.close(ctx, &clients) })
	}
	clients.Wait()
	work.Wait()
	return context.Cause(ctx)
}

// excused reports whether an error is due to the Close that is under way.
func (v *liver) excused(err error) bool {
	if !v.closing.Load() {
		return false
	}
	return errors.Is(err, rekindle.ErrClosed) || errors.Is(err, rekindle.ErrTxDone)
}

func (v *liver) client(ctx context.Context, i int32) error {
	for n := 0; !v.stop.Load() && (v.Transactions == 0 || n < v.Transactions); n++ {
		ack, err := v.clients.next(ctx, i)
		if err != nil {
			return err
		}
		if err := v.tell(message{Ack: &ack}); err != nil {
			return err
		}
	}
	return nil
}

// maintain does what the life maintains, in turns, with short breaks.
func (v *liver) maintain(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(v.Seed, 1))
	for i := 0; ; i++ {
		if !pause(ctx, time.Duration(rng.IntN(5_000))*time.Microsecond) || v.closing.Load() {
			return nil
		}
		phase := v.Maintain[i%len(v.Maintain)]
		v.phase(phase)
		act := map[Phase]func(context.Context) error{Checkpointing: v.db.Checkpoint, Compacting: v.db.Compact, Verifying: v.verify}[phase]
		if err := act(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
		if !v.closing.Load() {
			v.phase(Running)
		}
	}
}

// verify looks for damage; there is none.
func (v *liver) verify(ctx context.Context) error {
	report, err := v.db.Verify(ctx)
	if err == nil {
		err = damageIn(report)
	}
	return err
}

func damageIn(r *rekindle.VerifyReport) error {
	if r.Damage() {
		return fmt.Errorf("damage found: %v", r.Findings)
	}
	return nil
}

// settle waits for the disk now and then, for the clients do not.
func (v *liver) settle(ctx context.Context) error {
	for pause(ctx, settleEvery) && !v.closing.Load() {
		if err := v.tell(message{Settle: settleBegin}); err != nil {
			return err
		}
		if err := bench.Settle(ctx, v.db); err != nil {
			return err
		}
		if err := v.tell(message{Settle: settleEnd}); err != nil {
			return err
		}
	}
	return nil
}

// watch tells what the engine does in the background.
func (v *liver) watch(ctx context.Context) error {
	var last rekindle.Stats
	for pause(ctx, watchEvery) && !v.closing.Load() {
		now := v.db.Stats()
		w := Work{
			Segments: now.FreedSegments - last.FreedSegments,
			Moved:    now.CompactedRows - last.CompactedRows,
			Frozen:   int64(now.RowsFrozen - last.RowsFrozen),
		}
		if now.CheckpointCTS > last.CheckpointCTS && last.CheckpointCTS > 0 {
			w.Checkpoints = 1
		}
		last = now
		if w == (Work{}) {
			continue
		}
		if err := v.tell(message{Work: &w}); err != nil {
			return err
		}
	}
	return nil
}

// close closes the database. It may have to end transactions if the clients are
// busy.
func (v *liver) close(ctx context.Context, clients *sync.WaitGroup) error {
	if !pause(ctx, v.CloseAfter) {
		return nil
	}
	v.stop.Store(!v.Busy)
	if !v.Busy {
		clients.Wait()
	}
	v.closing.Store(true)
	v.phase(Closing)
	err := v.db.Close(ctx)
	if v.Busy && errors.Is(err, rekindle.ErrOpenTransactions) {
		err = nil
	}
	if err != nil {
		return err
	}
	v.phase(Closed)
	return nil
}

// pause returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
