package gc

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/txn"
)

// The memory in use moves between two marks, in sixteenths of the budget: above
// the upper one the freezer starts, at the lower one it stops.
const (
	startFreezing = 15
	stopFreezing  = 14
	// short is the mark above which memory is kept for nothing that can be read from
	// a file: it is about to be needed.
	short = 13
)

const (
	// assistPages are what a writer looks at that begins when the budget is used up.
	assistPages = 8
	// relievePages are what a writer looks at, at most, that has met the limit.
	relievePages = 1 << 12
	// freezeRest times the time that a round without success has taken is how long
	// the freezer rests after it, at least minRest.
	freezeRest = 8
	minRest    = 5 * time.Millisecond
	// idlePages are how many pages of arrays leave memory together, at most: their
	// memory is free when all pins of a moment have ended.
	idlePages = 256
	// thinPause after rows left memory, what they had is free.
	thinPause = 50 * time.Millisecond
	// changeInterval is how often a freezer that cannot do anything looks whether
	// that has changed.
	changeInterval = time.Second
)

// Freezer keeps a database within its memory budget. Its clock hand goes over the
// slots of all tables, again and again while memory is short, and sends those rows
// to the log that nobody has used since it last came by. Pages of arrays in which it
// finds no row in memory leave it too, if they are as the newest checkpoint has them.
//
// Rows are taken out by the collector's rule of one goroutine at a time, page by
// page: the background goroutine, and writers that begin or meet the memory limit.
type Freezer struct {
	c      *Collector
	budget int64
	files  func() int64 // bytes of mapped files
	tables func() []*txn.Table
	others func() // told that memory is needed: rows are not all that takes it
	wake   chan struct{}

	inUse atomic.Int64 // measured last
	stuck atomic.Bool  // all has been looked at and too little could go

	checkpoints atomic.Uint64 // noted by Changed

	hand struct { // guarded by the collector's lock
		tables  []*txn.Table // still to be looked at in this round
		ordinal uint64
		rounds  uint64      // begun
		idle    []arrayPage // without versions in memory, to leave it
	}
}

// arrayPage is a page of a table's array.
type arrayPage struct {
	table *txn.Table
	page  uint64
}

// NewFreezer returns the freezer for a budget in bytes, which memory outside of the
// arena takes its share of: mapped files, up to a half, because the system takes
// their pages away if it must. They count whether they are in memory or not: they
// come in faster than rows can go. It calls others, which must not wait, whenever
// it begins to make room.
func NewFreezer(c *Collector, budget int64, files func() int64, tables func() []*txn.Table, others func(), wake chan struct{}) *Freezer {
	return &Freezer{c: c, budget: budget, files: files, tables: tables, others: others, wake: wake}
}

// Run freezes rows until ctx ends. It sleeps until it is woken: when memory grows
// beyond Mark.
func (f *Freezer) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var thin <-chan time.Time // when to look at what is free by then
	for {
		select {
		case <-ctx.Done():
			return
		case <-thin:
			thin = nil
			f.thin()
			continue
		case <-f.wake:
		}
		start, seen := time.Now(), f.situation()
		if thin == nil {
			thin = time.After(thinPause)
		}
		if f.freeze(ctx) {
			continue
		}
		for timer.Reset(max(minRest, freezeRest*time.Since(start))); ; timer.Reset(changeInterval) {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if f.situation() != seen {
				break
			}
			f.others() // which may have waited for a moment to pass
		}
		f.Wake() // nothing else may ask
	}
}

// situation is all that decides whether something can leave memory. While it stays
// as it was when nothing could, there is nothing to look for.
type situation struct {
	inUse, files       int64
	visible, watermark uint64
	online             uint64
	checkpoints        uint64
}

func (f *Freezer) situation() situation {
	m := f.c.m
	return situation{
		inUse: m.Arena.Stats().InUse, files: f.files(),
		visible: m.Log.Visible(), watermark: m.Watermark(),
		online:      m.Counters().Online,
		checkpoints: f.checkpoints.Load(),
	}
}

// Changed is called behind a checkpoint, whose files may have what memory has.
func (f *Freezer) Changed() {
	f.checkpoints.Add(1)
	f.Wake()
}

// Wake makes Run look at the memory in use.
func (f *Freezer) Wake() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}

// freeze brings memory down to the lower mark if it is above the upper one. False
// means that it is too much and that no row can leave it, though all have had their
// chance: what is in use is spared in the first round, but not in the second.
func (f *Freezer) freeze(ctx context.Context) bool {
	if f.Measure() <= f.start() {
		return true
	}
	f.others()
	defer f.thin()
	f.makeDurable(ctx)
	frozen := int64(0)
	for last := f.Rounds() + 2; f.Rounds() <= last && ctx.Err() == nil; {
		goal := f.Measure() - f.budget/16*stopFreezing
		if goal <= 0 {
			return true
		}
		for goal > 0 && f.Rounds() <= last && ctx.Err() == nil {
			n := f.step()
			if f.idle() == idlePages {
				n += f.leave(ctx)
			}
			goal -= n
			frozen += n
		}
		frozen += f.leave(ctx)
		f.c.m.Epochs.Reclaim() // what was frozen is counted until then
	}
	if f.Measure() <= f.budget || ctx.Err() != nil {
		return true
	}
	f.stuck.Store(frozen == 0)
	if frozen > 0 {
		f.Wake()
	}
	return frozen > 0
}

// thin gives back what frozen rows have left between others. What is free in the
// arena otherwise counts for nothing here, but is in memory.
func (f *Freezer) thin() {
	if st := f.c.m.Arena.Stats(); st.Reserved-st.InUse > f.budget/16 {
		f.c.m.Arena.Thin()
	}
}

// makeDurable lets those rows go too that were committed a moment ago. If it fails
// the log says so to those who write.
func (f *Freezer) makeDurable(ctx context.Context) {
	if log := f.c.m.Log; log.Visible() > log.Durable() {
		_ = log.Flush(ctx)
	}
}

// Short reports whether memory is about to be needed.
func (f *Freezer) Short() bool { return f.Measure() > f.budget/16*short }

// start is where rows begin to leave memory.
func (f *Freezer) start() int64 { return f.budget / 16 * startFreezing }

// outside is what of the budget is not for the arena.
func (f *Freezer) outside() int64 { return min(f.files(), f.budget/2) }

// Mark is how much memory the arena may have in use before the freezer has to be
// woken. It follows the mapped files.
func (f *Freezer) Mark() int64 { return f.start() - f.outside() }

// Measure looks at the memory in use.
func (f *Freezer) Measure() int64 {
	inUse := f.c.m.Arena.Stats().InUse + f.outside()
	f.inUse.Store(inUse)
	f.c.m.SetRoom(inUse <= f.budget, inUse < f.budget/2)
	return inUse
}

// Rounds is how often the hand has begun to go over all slots.
func (f *Freezer) Rounds() uint64 {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.hand.rounds
}

// step moves the hand over one page and returns the bytes that were retired.
func (f *Freezer) step() int64 {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.page()
}

// page is step with the collector's lock held.
func (f *Freezer) page() (bytes int64) {
	t := f.table()
	if t == nil {
		return 0
	}
	m, h := f.c.m, f.c.h
	watermark := m.Watermark()
	h.Pin()
	defer h.Unpin()
	versions := 0
	next, more := t.Rows.InMemory(f.hand.ordinal, func(ordinal uint64, word indirection.Word) {
		versions++
		n, err := m.Freeze(h, t, ordinal, word, watermark)
		if err != nil {
			f.c.logger.Warn("row stays in memory", "table", t.Name(), "row", ordinal, "error", err)
		}
		bytes += int64(n)
	})
	f.hand.ordinal = next
	if !more {
		f.hand.tables = f.hand.tables[1:]
	} else if versions == 0 && len(f.hand.idle) < idlePages {
		f.hand.idle = append(f.hand.idle, arrayPage{t, (next - 1) / indirection.PageSlots})
	}
	if bytes > 0 {
		f.stuck.Store(false)
	}
	return bytes
}

// idle counts the pages of arrays in which the hand has found no version.
func (f *Freezer) idle() int {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return len(f.hand.idle)
}

// leave lets those pages leave memory that the newest checkpoint has, and returns
// their bytes. One that has just lost its versions is left to the next round.
func (f *Freezer) leave(ctx context.Context) (bytes int64) {
	f.c.mu.Lock()
	idle := f.hand.idle
	f.hand.idle = nil
	f.c.mu.Unlock()
	for len(idle) > 0 {
		t := idle[0].table
		var pages []uint64
		for len(idle) > 0 && idle[0].table == t {
			pages = append(pages, idle[0].page)
			idle = idle[1:]
		}
		n, err := t.Rows.Leave(ctx, pages)
		if err != nil && ctx.Err() == nil {
			f.c.logger.Warn("array stays in memory", "table", t.Name(), "error", err)
		}
		bytes += n
	}
	return bytes
}

// table is the one that the hand is in, nil if there is none.
func (f *Freezer) table() *txn.Table {
	if len(f.hand.tables) == 0 {
		f.hand.tables, f.hand.ordinal = f.tables(), 0
		f.hand.rounds++
	}
	if len(f.hand.tables) == 0 {
		return nil
	}
	return f.hand.tables[0]
}

// Assist keeps writers from filling memory faster than it is freed. It is called
// where a transaction begins that may write. When nothing can be frozen, because
// what takes the memory is no row or is needed by an old snapshot, it slows nobody
// down.
func (f *Freezer) Assist() {
	if f.inUse.Load() <= f.budget || f.stuck.Load() {
		return
	}
	if !f.c.mu.TryLock() {
		time.Sleep(throttle) // the processor is better used by those who make room
		f.Measure()
		return
	}
	for range assistPages {
		f.page()
	}
	f.c.mu.Unlock()
	f.c.m.Epochs.Reclaim()
	f.Measure()
}

// Relieve makes room for a writer that has met the memory limit, and reports
// whether it could.
func (f *Freezer) Relieve() bool {
	var freed int64
	for pages, last := 0, f.Rounds()+2; pages < relievePages && f.Rounds() <= last && freed <= f.budget/16; pages++ {
		freed += f.step()
	}
	f.c.m.Epochs.Reclaim()
	f.Measure()
	return freed > 0
}
