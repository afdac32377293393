package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/txn"
)

const (
	// interval is how often the collector looks at the watermark while there
	// is garbage waiting for it.
	interval = 5 * time.Millisecond
	// stepItems bounds the work done in one go, so that nobody waits long for
	// the collector's lock.
	stepItems = 256
	// assistBacklog is the backlog above which writers help a collector that is
	// behind, and throttleBacklog that above which they wait for it if others
	// are helping already.
	assistBacklog   = 1 << 14
	throttleBacklog = 1 << 16
	assistItems     = 128
	throttle        = 200 * time.Microsecond
)

// Collector removes versions, entries and rows. Step, Assist, Suspects and
// Stats are safe for concurrent use.
type Collector struct {
	m      *txn.Manager
	h      *epoch.Handle
	logger *slog.Logger

	mu      sync.Mutex // one goroutine collects at a time
	waiting txn.GarbageList
	due     txn.GarbageList
	sweeper txn.Sweeper
	record  []byte

	backlog  atomic.Int64
	behind   atomic.Bool // the last step left work that was due
	removed  atomic.Int64
	kept     atomic.Int64
	recycled atomic.Int64
	failed   atomic.Int64
}

// New returns a collector for the garbage of m. A nil logger discards.
func New(m *txn.Manager, logger *slog.Logger) *Collector {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{m: m, h: m.Epochs.Register(), logger: logger}
}

// Run collects until ctx ends. It sleeps while there is no garbage.
func (c *Collector) Run(ctx context.Context) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		c.Settle(ctx)
		if c.Backlog() == 0 {
			if !c.m.Garbage.Wait(ctx) {
				return
			}
		}
		timer.Reset(interval)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// Settle works off everything that is due now, unless ctx ends earlier.
func (c *Collector) Settle(ctx context.Context) {
	for ctx.Err() == nil && c.Step(stepItems) == stepItems {
	}
	c.m.Epochs.Reclaim()
}

// Backlog returns about how many pieces of garbage are not worked off, due or
// not. While a step moves them from one list to the next some are not counted.
func (c *Collector) Backlog() int { return int(c.backlog.Load()) + c.m.Garbage.Len() }

// Assist keeps writers from producing garbage faster than it is collected. If
// much of it is due they collect some, or pause for a moment while others do.
// Garbage that waits for an old snapshot slows nobody down.
func (c *Collector) Assist() {
	backlog := c.Backlog()
	if backlog < assistBacklog || !c.behind.Load() {
		return
	}
	if c.mu.TryLock() {
		c.step(assistItems)
		c.mu.Unlock()
	} else if backlog > throttleBacklog {
		time.Sleep(throttle) // the processor is better used by those who collect
	}
}

// Step works off at most limit pieces that are due and returns how many it
// did.
func (c *Collector) Step(limit int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.step(limit)
}

func (c *Collector) step(limit int) int {
	watermark := c.m.Watermark()
	c.take()
	done := c.drain(&c.due, limit, watermark)
	done += c.drain(&c.waiting, limit-done, watermark)
	c.count()
	c.behind.Store(done == limit)
	return done
}

// take moves what transactions have reported into the collector's lists.
func (c *Collector) take() {
	c.m.Garbage.Take(&c.waiting, &c.due)
	c.count()
}

func (c *Collector) count() { c.backlog.Store(int64(c.waiting.Len() + c.due.Len())) }

func (c *Collector) drain(list *txn.GarbageList, limit int, watermark uint64) int {
	for done := range limit {
		g, ok := list.First()
		if !ok || g.CTS > watermark {
			return done
		}
		if err := c.work(g, watermark); err != nil {
			c.report(g, err)
		}
		list.Drop()
	}
	return limit
}

// report notes garbage that could not be removed. It stays garbage: harmless
// to readers, but space.
func (c *Collector) report(g txn.Garbage, err error) {
	c.failed.Add(1)
	c.logger.Warn("garbage stays behind", "row", g.Row, "error", err)
}

func (c *Collector) work(g txn.Garbage, watermark uint64) error {
	t := c.m.Find(g.Row.Table())
	if t == nil {
		return nil // the table is gone and all its garbage with it
	}
	switch g.Kind {
	case txn.GarbageVersions:
		c.h.Pin()
		defer c.h.Unpin()
		return c.m.Trim(c.h, t, g.Row.Ordinal(), watermark)
	case txn.GarbageSuspect:
		return c.sweep(t, g)
	case txn.GarbageRow:
		t.IDs.Free(g.Row.Ordinal())
		c.recycled.Add(1)
		return nil
	}
	return fmt.Errorf("unknown kind of garbage %d", g.Kind)
}

// sweepAttempts bounds how often a suspect is judged anew because its row
// moved between memory and log meanwhile; given up, it stays as garbage.
const sweepAttempts = 8

var errMoving = errors.New("row kept moving while its entry was judged")

// sweep removes a suspect's entry if no version of the row has the key. A row
// that lies in the log is read first, because nothing may be read under the
// key's latch.
func (c *Collector) sweep(t *txn.Table, g txn.Garbage) error {
	var last error
	for range sweepAttempts {
		cold, done, err := c.judge(t, g)
		if done || err != nil {
			return err
		}
		has, err := c.recordHasKey(t, g, cold)
		if errors.Is(err, fault.ErrClosed) || has {
			return err
		}
		if err != nil {
			last = err
			continue // the segment may be gone because the row moved
		}
		if done, err := c.remove(t, g, cold); done || err != nil {
			return err
		}
	}
	return errors.Join(errMoving, last)
}

// judge settles the suspect if the row's chain is in memory, else it returns
// the log address to read.
func (c *Collector) judge(t *txn.Table, g txn.Garbage) (cold logstream.Address, done bool, err error) {
	c.h.Pin()
	holds, cold, err := c.m.HoldsKey(t, g.Row.Ordinal(), int(g.Index), g.Key)
	c.h.Unpin()
	if err != nil || holds {
		c.kept.Add(1)
		return 0, true, err
	}
	if cold != 0 {
		return cold, false, nil
	}
	done, err = c.remove(t, g, 0)
	return 0, done, err
}

func (c *Collector) recordHasKey(t *txn.Table, g txn.Garbage, cold logstream.Address) (bool, error) {
	if cold == 0 {
		return false, nil
	}
	record, buf, err := c.m.Log.ReadAt(cold, c.record)
	c.record = buf
	if err != nil || record.Row != g.Row {
		return false, err
	}
	return t.Layout.KeyMatches(int(g.Index), record.Payload, g.Key), nil
}

// remove takes the entry out unless the chain has changed its mind. done is
// false if the row went to another place in the log, so that the verdict says
// nothing.
func (c *Collector) remove(t *txn.Table, g txn.Garbage, cold logstream.Address) (done bool, err error) {
	c.h.Pin()
	removed, done, err := c.sweeper.Sweep(c.m, c.h, t, g, cold)
	c.h.Unpin()
	if removed {
		c.removed.Add(1)
	}
	return done, err
}

// Suspects calls f with every suspect that is not worked off: what a
// checkpoint has to remember, because the entries may be in its index files.
// Keys are valid during the call.
func (c *Collector) Suspects(f func(txn.Garbage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take()
	for _, list := range []*txn.GarbageList{&c.due, &c.waiting} {
		list.All(func(g txn.Garbage) {
			if g.Kind == txn.GarbageSuspect {
				f(g)
			}
		})
	}
}

// Add hands over garbage found outside of transactions: the suspects that a
// recovery brought along.
func (c *Collector) Add(g txn.Garbage) {
	c.mu.Lock()
	c.due.Add(g)
	c.count()
	c.mu.Unlock()
}

// Stats are totals since the collector was made, but for Backlog.
type Stats struct {
	Backlog  int   // pieces not worked off
	Removed  int64 // index entries removed
	Kept     int64 // suspects whose entry turned out to be in use
	Recycled int64 // row identities made free
	Failed   int64 // pieces given up, see the log
}

// Stats returns the collector's figures, between two steps.
func (c *Collector) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{c.Backlog(), c.removed.Load(), c.kept.Load(), c.recycled.Load(), c.failed.Load()}
}
