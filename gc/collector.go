package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

const (
	// interval is how often the collector looks for what has become due while
	// there is garbage waiting.
	interval = 5 * time.Millisecond
	// quiet is how long there is no garbage before memory is given back.
	quiet = 100 * time.Millisecond
	// retry is how long garbage waits that could not be removed for want of memory.
	retry = 100 * time.Millisecond
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
	m       *txn.Manager
	h       *epoch.Handle
	logger  *slog.Logger
	starved func()

	mu        sync.Mutex // one goroutine collects at a time
	snapshots txn.Snapshots
	waiting   txn.GarbageList // for the horizon to reach its CTS
	due       txn.GarbageList
	held      held            // for a snapshot to go
	short     txn.GarbageList // for memory, in the order in which it was due
	trimmed   trimmed
	kept      []uint64
	sweeper   txn.Sweeper
	record    []byte

	backlog  atomic.Int64
	holding  atomic.Int64
	behind   atomic.Bool // the last step left work that was due
	removed  atomic.Int64
	inUse    atomic.Int64
	recycled atomic.Int64
	failed   atomic.Int64
}

// New returns a collector for the garbage of m. A nil logger discards. It calls
// starved, which must not wait, now and then while there is no memory to remove
// garbage with.
func New(m *txn.Manager, logger *slog.Logger, starved func()) *Collector {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c := &Collector{m: m, h: m.Epochs.Register(), logger: logger, starved: starved}
	c.h.SetPriority(arena.Collect)
	return c
}

// Run collects until ctx ends. It sleeps while there is no garbage.
func (c *Collector) Run(ctx context.Context) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for last := time.Now(); ; {
		if time.Since(last) >= retry {
			c.tryAgain()
			last = time.Now()
		}
		c.Settle(ctx)
		if c.Backlog() == 0 && !c.awaitGarbage(ctx) {
			return
		}
		timer.Reset(interval)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// awaitGarbage sleeps until there is garbage; false means that ctx ended first.
// When it is quiet the memory goes back that is kept to be quick, so a steady
// load does not take it again and again.
func (c *Collector) awaitGarbage(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	if c.m.Garbage.Wait(short) {
		return true
	}
	c.GiveBack()
	return c.m.Garbage.Wait(ctx)
}

// GiveBack returns memory that nobody uses to the system. Run calls it when it
// is quiet; others call it when they have freed much.
func (c *Collector) GiveBack() {
	c.m.Epochs.Reclaim()
	c.m.Arena.Trim()
}

// tryAgain makes that due which memory was short for, and gives back what may be
// in its way.
func (c *Collector) tryAgain() {
	c.mu.Lock()
	again := c.short.Len() > 0
	c.due.Append(&c.short)
	c.mu.Unlock()
	if again {
		c.GiveBack()
		c.starved()
	}
}

// Settle works off everything that is due now, unless ctx ends earlier, and returns
// how many pieces that were.
func (c *Collector) Settle(ctx context.Context) (done int) {
	for more := true; more && ctx.Err() == nil; {
		n := c.Step(stepItems)
		done += n
		more = n == stepItems
	}
	c.m.Epochs.Reclaim()
	return done
}

// Backlog returns about how many pieces of garbage are not worked off, due or
// not. While a step moves them from one list to the next some are not counted.
func (c *Collector) Backlog() int { return c.unheld() + int(c.holding.Load()) }

func (c *Collector) unheld() int { return int(c.backlog.Load()) + c.m.Garbage.Len() }

// Assist keeps writers from producing garbage faster than it is collected. If
// much of it is due they collect some, or pause for a moment while others do.
// Garbage that is held for an old snapshot slows nobody down.
func (c *Collector) Assist() {
	backlog := c.unheld()
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
	c.m.Snapshots(&c.snapshots)
	c.trimmed = trimmed{}
	c.take()
	c.held.release(&c.snapshots, &c.due)
	done := c.drain(&c.due, limit)
	done += c.drain(&c.waiting, limit-done)
	c.count()
	c.behind.Store(done == limit)
	return done
}

// take moves what transactions have reported into the collector's lists.
func (c *Collector) take() {
	c.m.Garbage.Take(&c.waiting, &c.due)
	c.count()
}

func (c *Collector) count() {
	c.backlog.Store(int64(c.waiting.Len() + c.due.Len() + c.short.Len()))
	c.holding.Store(int64(c.held.count))
}

func (c *Collector) drain(list *txn.GarbageList, limit int) int {
	for done := range limit {
		g, ok := list.First()
		if !ok || g.CTS > c.snapshots.Horizon() {
			return done
		}
		c.settle(g)
		list.Drop()
	}
	return limit
}

// settle works on a piece that is due. To remove an entry can take memory, as a
// node is copied for it. What there was none for is tried again later, and before it
// the identity of no deleted row becomes free, which an entry may name.
func (c *Collector) settle(g txn.Garbage) {
	if g.Kind == txn.GarbageRow && c.short.Len() > 0 {
		c.short.Add(g)
		return
	}
	err := c.work(g)
	switch {
	case errors.Is(err, fault.ErrMemoryLimit):
		c.short.Add(g)
	case err != nil:
		c.report(g, err)
	}
}

// report notes garbage that could not be removed. It stays garbage: harmless
// to readers, but space.
func (c *Collector) report(g txn.Garbage, err error) {
	c.failed.Add(1)
	c.logger.Warn("garbage stays behind", "row", g.Row, "error", err)
}

func (c *Collector) work(g txn.Garbage) error {
	t := c.m.Find(g.Row.Table())
	if t == nil {
		return nil // the table is gone and all its garbage with it
	}
	switch g.Kind {
	case txn.GarbageVersions:
		if c.trimmed.add(g.Row) {
			return nil
		}
		return c.trim(t, g.Row)
	case txn.GarbageSuspect:
		return c.sweep(t, g)
	case txn.GarbageRow:
		return c.recycle(t, g)
	}
	return fmt.Errorf("unknown kind of garbage %d", g.Kind)
}

// trimmed remembers rows that were trimmed in this step, some of them: a row
// that is updated all the time has its chain walked once a step and not once a
// commit.
type trimmed [64]rowid.ID

// add returns true if the row is there already.
func (l *trimmed) add(row rowid.ID) bool {
	place := &l[row.Ordinal()%uint64(len(l))]
	if *place == row {
		return true
	}
	*place = row
	return false
}

// trim cuts a row's chain and holds the row for each snapshot that sees one of
// its older versions. In c.kept it leaves those snapshots, newest first.
func (c *Collector) trim(t *txn.Table, row rowid.ID) (err error) {
	c.h.Pin()
	c.kept, err = c.m.Trim(c.h, t, row.Ordinal(), &c.snapshots, c.kept[:0])
	c.h.Unpin()
	for _, snapshot := range c.kept {
		c.held.add(snapshot, txn.Garbage{Row: row, Kind: txn.GarbageVersions})
	}
	return err
}

var errOccupied = errors.New("the slot of a deleted row is not empty")

// recycle makes a row's identity free if nothing is left of the row. It is held
// for the newest snapshot that sees the row: suspects of the row are held for
// that one or older ones.
func (c *Collector) recycle(t *txn.Table, g txn.Garbage) error {
	word, err := t.Rows.Load(g.Row.Ordinal())
	if err != nil {
		return err
	}
	if word == 0 {
		t.IDs.Free(g.Row.Ordinal())
		c.recycled.Add(1)
		return nil
	}
	if err := c.trim(t, g.Row); err != nil {
		return err
	}
	if len(c.kept) == 0 {
		return errOccupied
	}
	c.held.add(c.kept[0], g)
	return nil
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
		use, err := c.use(t, g)
		if err != nil {
			return err
		}
		if use.Held {
			if settled, err := c.keep(t, g, use); settled || err != nil {
				return err
			}
			continue
		}
		has, err := c.recordHasKey(t, g, use.Cold)
		if errors.Is(err, fault.ErrClosed) || has {
			return err
		}
		if err != nil {
			last = err
			continue // the segment may be gone because the row moved
		}
		if done, err := c.remove(t, g, use.Cold); done || err != nil {
			return err
		}
	}
	return errors.Join(errMoving, last)
}

func (c *Collector) use(t *txn.Table, g txn.Garbage) (txn.KeyUse, error) {
	c.h.Pin()
	defer c.h.Unpin()
	return c.m.KeyUse(t, g.Row.Ordinal(), int(g.Index), g.Key)
}

// keep settles a suspect whose entry is in use. If the newest version with the
// key is the row's present one, or was replaced above the horizon, the suspect
// can be dropped: who takes the key away from the row reports it, then or a
// moment ago. Else old snapshots see that version, and the suspect is held for
// one of them; or none does any more, and the chain is trimmed so that the
// suspect can be judged again.
func (c *Collector) keep(t *txn.Table, g txn.Garbage, use txn.KeyUse) (settled bool, err error) {
	if use.To > c.snapshots.Horizon() {
		c.inUse.Add(1)
		return true, nil
	}
	if snapshot, ok := c.snapshots.Within(use.From, use.To); ok {
		c.held.add(snapshot, g)
		return true, nil
	}
	return false, c.trim(t, g.Row)
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
	if err := t.Layout.Check(record.Payload); err != nil {
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
	c.m.Garbage.Wake()
	suspects := func(g txn.Garbage) {
		if g.Kind == txn.GarbageSuspect {
			f(g)
		}
	}
	c.due.All(suspects)
	c.waiting.All(suspects)
	c.short.All(suspects)
	c.held.all(suspects)
}

// Add hands over garbage found outside of transactions: the suspects that a
// recovery brought along.
func (c *Collector) Add(g txn.Garbage) {
	c.mu.Lock()
	c.due.Add(g)
	c.count()
	c.mu.Unlock()
}

// Stats are totals since the collector was made, but for the first three.
type Stats struct {
	Backlog  int   // pieces not worked off
	Held     int   // those of them that wait for an old snapshot to go
	Versions int   // among Backlog: row versions that newer ones have replaced
	Suspects int   // among Backlog: index entries that may be dangling
	Removed  int64 // index entries removed
	InUse    int64 // suspects whose entry turned out to be in use
	Recycled int64 // row identities made free
	Failed   int64 // pieces given up, see the log
}

// Stats returns the collector's figures, between two steps.
func (c *Collector) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Backlog:  c.Backlog(),
		Held:     c.held.count,
		Versions: c.countKind(txn.GarbageVersions),
		Suspects: c.countKind(txn.GarbageSuspect),
		Removed:  c.removed.Load(),
		InUse:    c.inUse.Load(),
		Recycled: c.recycled.Load(),
		Failed:   c.failed.Load(),
	}
}

func (c *Collector) countKind(kind txn.GarbageKind) int {
	return c.due.Count(kind) + c.waiting.Count(kind) + c.short.Count(kind) + c.held.countKind(kind) + c.m.Garbage.Count(kind)
}
