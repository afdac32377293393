package overhead

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/latency"
)

// Window is the resolution of the timeline.
const Window = 100 * time.Millisecond

// Slice is a time of work with or without checkpoints.
type Slice struct {
	On          bool
	Begin       time.Duration // since the start of the first slice
	All         Commits
	Running     Commits      // those that overlap a checkpoint
	Windows     []int64      // transactions that ended in each
	Checkpoints []Checkpoint // since the begin of the slice
	Index       int64        // most bytes of memory of the indexes
}

// Commits are the transactions of some time.
type Commits struct {
	Count          int64
	Time           time.Duration // that they ended in
	P50, P99, P999 time.Duration
}

func commits(h *latency.Histogram, in time.Duration) Commits {
	return Commits{
		Count: int64(h.Count()), Time: in,
		P50: h.Quantile(0.5), P99: h.Quantile(0.99), P999: h.Quantile(0.999),
	}
}

// slicer is a slice under way.
type slicer struct {
	*measurer
	slice   Slice
	begin   time.Time
	running atomic.Bool // a checkpoint
	windows []atomic.Int64
	stop    chan struct{} // closed at the end of the slice

	mu        sync.Mutex // the rest is collected from the clients
	idle, hit latency.Histogram
}

// slice works for one slice. The state before is that after a checkpoint.
func (m *measurer) slice(ctx context.Context, on bool) (Slice, error) {
	if err := bench.Checkpoint(ctx, m.db); err != nil {
		return Slice{}, err
	}
	length := m.config.Load.Slice
	s := &slicer{measurer: m, stop: make(chan struct{}), begin: time.Now(), windows: make([]atomic.Int64, length/Window)}
	s.slice = Slice{On: on, Begin: s.begin.Sub(m.start)}
	if err := s.work(ctx); err != nil {
		return Slice{}, err
	}
	s.finish()
	return s.slice, nil
}

// work returns the first error of a goroutine; it ends the others.
func (s *slicer) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	start := func(f func(context.Context) error) {
		group.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	for i := range s.config.Load.Writers {
		start(func(ctx context.Context) error { return s.client(ctx, i) })
	}
	start(s.watchIndexes)
	if s.slice.On {
		start(s.checkpoint)
	}
	timer := time.NewTimer(s.config.Load.Slice)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	close(s.stop)
	group.Wait()
	return context.Cause(ctx)
}

func (s *slicer) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// pause waits and says whether the slice goes on.
func (s *slicer) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.stop:
		return false
	case <-timer.C:
		return true
	}
}

// checkpoint takes one after the other until the slice ends; the last one may
// go on after that.
func (s *slicer) checkpoint(ctx context.Context) error {
	every := s.config.Load.Every
	for wait := every / 2; s.pause(wait); {
		s.running.Store(true)
		c, err := timedCheckpoint(ctx, s.db, s.config.Dir, s.begin)
		s.running.Store(false)
		if err != nil {
			return err
		}
		s.slice.Checkpoints = append(s.slice.Checkpoints, c)
		wait = max(0, every-c.Took)
	}
	return nil
}

// indexEvery is how often the memory of the indexes is looked at.
const indexEvery = 500 * time.Millisecond

func (s *slicer) watchIndexes(context.Context) error {
	for {
		s.slice.Index = max(s.slice.Index, s.db.Stats().IndexBytes)
		if !s.pause(indexEvery) {
			return nil
		}
	}
}

// finish sums up when all goroutines have ended.
func (s *slicer) finish() {
	length := s.config.Load.Slice
	var hit time.Duration
	for i := range s.slice.Checkpoints {
		c := &s.slice.Checkpoints[i]
		hit += max(0, min(c.End(), length)-c.Begin)
	}
	s.slice.Running = commits(&s.hit, hit)
	s.idle.Merge(&s.hit)
	s.slice.All = commits(&s.idle, length)
	for i := range s.windows {
		s.slice.Windows = append(s.slice.Windows, s.windows[i].Load())
	}
}
