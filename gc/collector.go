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
	// stepItems bounds the work done in one go, so that Close need not wait.
	stepItems = 4096
	// assistBacklog is the backlog above which writers collect too.
	assistBacklog = 1 << 17
	assistItems   = 512
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
	verdict suspectVerdict

	backlog  atomic.Int64
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

// Assist works off some garbage on the caller's goroutine if the collector has
// fallen far behind and nobody else is at it.
func (c *Collector) Assist() {
	if c.Backlog() < assistBacklog || !c.mu.TryLock() {
		return
	}
	c.step(assistItems)
	c.mu.Unlock()
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
			continue // the segment may be gone because the row moved
		}
		if done, err := c.remove(t, g, cold); done || err != nil {
			return err
		}
	}
	return errMoving
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
	record, buf, err := c.m.Log.ReadAt(cold, c.verdict.buf)
	c.verdict.buf = buf
	if err != nil || record.Row != g.Row {
		return false, err
	}
	return t.Layout.KeyMatches(int(g.Index), record.Payload, g.Key), nil
}

// remove takes the entry out unless the chain has changed its mind. done is
// false if the row went to another place in the log, so that the verdict says
// nothing.
func (c *Collector) remove(t *txn.Table, g txn.Garbage, cold logstream.Address) (done bool, err error) {
	v := &c.verdict
	v.m, v.t, v.g, v.cold = c.m, t, g, cold
	v.moved, v.err = false, nil
	c.h.Pin()
	removed, err := t.Indexes[g.Index].Remove(c.h, g.Key, g.Row, v.dead)
	c.h.Unpin()
	if removed {
		c.removed.Add(1)
	}
	return !v.moved, errors.Join(err, v.err)
}

// suspectVerdict is the question that an index asks under the key's latch.
type suspectVerdict struct {
	m     *txn.Manager
	t     *txn.Table
	g     txn.Garbage
	cold  logstream.Address // known not to have the key
	buf   []byte
	moved bool
	err   error
}

func (v *suspectVerdict) dead() bool {
	holds, cold, err := v.m.HoldsKey(v.t, v.g.Row.Ordinal(), int(v.g.Index), v.g.Key)
	v.err = err
	v.moved = cold != 0 && cold != v.cold
	return err == nil && !holds && !v.moved
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
