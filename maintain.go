package rekindle

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/recovery"
)

// growth decides when the log has grown enough for a checkpoint. next and limit
// are 0 in a database without automatic ones.
type growth struct {
	next    atomic.Uint64               // checkpoint when so many bytes have been logged
	limit   atomic.Uint64               // refuse writers here while checkpoints fail
	covered atomic.Int64                // what was logged before the newest checkpoint; negative: a tail from before Open
	indexes atomic.Pointer[indexesLeft] // by the newest checkpoint
	due     chan struct{}
	failure atomic.Pointer[error] // of the last checkpoint
}

const (
	// stallFactor times CheckpointBytes is how far the log's tail may grow while
	// checkpoints fail.
	stallFactor = 16
	// crowdedFactor times CheckpointBytes is how far it may grow before writers slow
	// down, with twice that for the worst, because checkpoints take longer than the
	// log to grow: each one has more to do than the one before then.
	crowdedFactor = 8
	// checkpointRetry is how long the next checkpoint waits after a failed one,
	// whoever asks.
	checkpointRetry = 100 * time.Millisecond
)

// assist is what a transaction does that begins to write.
func (db *DB) assist() {
	db.collector.Assist()
	if db.freezer != nil {
		db.freezer.Assist()
	}
}

// mappedMemory is how much of the mapped files may be in memory.
func (db *DB) mappedMemory() int64 { return db.files.Mapped() }

// keptIndexes is the part of the memory budget, 1/keptIndexes, up to which indexes
// keep in memory what they have there: it serves more reads than rows in its place.
const keptIndexes = 8

// indexesShrink reports whether memory is about to be needed that indexes could do
// without.
func (db *DB) indexesShrink() bool {
	return db.freezer != nil && db.freezer.Short() && db.indexMemory() > db.budget/keptIndexes
}

// While memory is short a checkpoint is due when the indexes have taken a growthPart
// of the budget since the last one, or take an indexPart of it and the last one was
// indexPause ago: what was changed while it was written could not leave memory.
const (
	growthPart = 8
	indexPart  = 4
	indexPause = time.Second
)

// relieveIndexes asks for a checkpoint if the indexes take much memory: behind it
// they give up what is in its files.
func (db *DB) relieveIndexes() {
	if db.opts.CheckpointBytes <= 0 {
		return
	}
	budget, left, bytes := db.budget, db.growth.indexes.Load(), db.indexMemory()
	if bytes-left.bytes > budget/growthPart || bytes > budget/indexPart && left.changed(db.manager.Logged()) {
		db.askForCheckpoint()
	}
}

// makeRoom asks for a checkpoint where memory is lacking: what has been entered in
// indexes since the last one may leave memory behind it.
func (db *DB) makeRoom() {
	if db.opts.CheckpointBytes > 0 && db.growth.indexes.Load().changed(db.manager.Logged()) {
		db.askForCheckpoint()
	}
}

// indexesLeft is what a checkpoint has left in memory of the indexes.
type indexesLeft struct {
	bytes  int64
	at     time.Time
	logged uint64
}

// changed reports whether another checkpoint could leave less.
func (l *indexesLeft) changed(logged uint64) bool {
	return logged != l.logged && time.Since(l.at) > indexPause
}

func (db *DB) indexMemory() (bytes int64) {
	for _, t := range db.catalog.tables() {
		for _, ix := range t.Indexes {
			bytes += ix.Stats().Bytes
		}
	}
	return bytes
}

// relieve is what a statement does that has met the memory limit: it collects the
// garbage, which deletes would otherwise be faster than, and freezes rows. What was
// committed a moment ago can be frozen, or is garbage, when it is durable. It reports
// whether it has found anything or less memory is in use than before: others make
// room too, and it is free only when all pins of a moment have ended.
func (db *DB) relieve() bool {
	before := db.arena.Stats().InUse
	db.makeRoom()
	if db.log.Visible() > db.log.Durable() && db.log.Flush(db.life) != nil {
		return false
	}
	found := db.collector.Settle(db.life) > 0
	found = db.freezer != nil && db.freezer.Relieve() || found
	if db.epochs.Barrier(db.life) != nil { // who is pinned may hold what has just been given up
		return false
	}
	db.collector.GiveBack() // what is free in spans of another size too
	return found || db.arena.Stats().InUse < before
}

// start begins the background work.
func (db *DB) start() {
	ctx, cancel := context.WithCancel(context.Background())
	db.life, db.stop = ctx, cancel
	close(db.recovered)
	db.shareBudget()
	db.growth.due = make(chan struct{}, 1)
	db.growth.covered.Store(-db.state.Report.TailBytes)
	db.growth.indexes.Store(&indexesLeft{})
	db.compaction = make(chan struct{}, 1)
	if db.freezer != nil {
		db.freezer.Measure()
		db.background.Go(func() { db.freezer.Run(ctx) })
	}
	db.background.Go(func() { db.watchTransactions(ctx) })
	db.background.Go(func() { db.repairWhenDue(ctx) })
	db.background.Go(func() { db.fillCache(ctx) })
	if db.opts.ReadOnly {
		return
	}
	finders := db.ordinalFinders()
	offer(finders)
	db.background.Go(func() {
		db.collector.Settle(ctx) // suspects that recovery brought along
		for _, f := range finders {
			f.findMany(ctx)
		}
		db.collector.Run(ctx)
	})
	if db.opts.CheckpointBytes > 0 {
		db.expectCheckpoint(db.manager.Logged(), uint64(db.state.Report.TailBytes))
		if db.state.Report.TailBytes >= db.opts.CheckpointBytes {
			db.askForCheckpoint()
		}
		db.background.Go(func() { db.checkpointWhenDue(ctx) })
	}
	if db.compacts() {
		db.askForCompaction()
		db.background.Go(func() { db.compactWhenDue(ctx) })
	}
}

const (
	// watchInterval is how exact the ages of transactions are.
	watchInterval = time.Second
	// watchesPerAge is how often a transaction is looked at while its snapshot
	// may live.
	watchesPerAge = 8
)

// watchTransactions notices the open transactions, so that their ages are known,
// and ends those that are too old.
func (db *DB) watchTransactions(ctx context.Context) {
	limit, interval := db.opts.MaxSnapshotAge, watchInterval
	if limit > 0 {
		interval = max(time.Millisecond, min(interval, limit/watchesPerAge))
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if ended := db.manager.Watch(now, limit); ended > 0 {
				db.opts.Logger.Warn("transactions ended: their snapshots were too old", "count", ended, "limit", limit)
			}
		}
	}
}

// expectCheckpoint sets the next goal. The newest checkpoint describes what had
// been logged when Logged was at logged, but for a tail from before Open.
func (db *DB) expectCheckpoint(logged, tail uint64) {
	bytes := uint64(db.opts.CheckpointBytes)
	db.growth.limit.Store(logged + stallFactor*bytes)
	db.growth.next.Store(max(1, logged+bytes-min(bytes, tail)))
}

// noticeGrowth asks for a checkpoint if one is due.
func (db *DB) noticeGrowth() {
	if next := db.growth.next.Load(); next != 0 && db.manager.Logged() >= next {
		db.askForCheckpoint()
	}
}

func (db *DB) askForCheckpoint() { ask(db.growth.due) }

func ask(due chan struct{}) {
	select {
	case due <- struct{}{}:
	default: // asked for already
	}
}

// tailCrowding says how far the log's tail is too long, from 0 to 1.
func (db *DB) tailCrowding() float64 {
	tail := int64(db.manager.Logged()) - db.growth.covered.Load()
	most := crowdedFactor * db.opts.CheckpointBytes
	if tail <= most {
		return 0
	}
	return min(1, float64(tail-most)/float64(most))
}

// stalled refuses writers when the tail has grown too long because checkpoints
// keep failing. Nothing else asks for another try then, so it does.
func (db *DB) stalled() error {
	failure, limit := db.growth.failure.Load(), db.growth.limit.Load()
	if failure == nil || limit == 0 || db.manager.Logged() < limit {
		return nil
	}
	db.askForCheckpoint()
	return fmt.Errorf("%w: %w", fault.ErrCheckpointStalled, *failure)
}

func (db *DB) checkpointWhenDue(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.growth.due:
		}
		if err := db.checkpoint(ctx); err != nil && ctx.Err() == nil {
			db.opts.Logger.Warn("checkpoint failed", "error", err)
			sleep(ctx, checkpointRetry)
		}
	}
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// checkpoint writes one if anything has changed.
func (db *DB) checkpoint(ctx context.Context) error {
	return db.writeCheckpoint(ctx, db.checkpointer.Run)
}

// writeCheckpoint writes one and sets the next goal; after a failure that is
// nearer.
func (db *DB) writeCheckpoint(ctx context.Context, write func(context.Context) (recovery.Result, error)) error {
	logged := db.manager.Logged()
	_, err := write(ctx)
	if err != nil && ctx.Err() != nil {
		return err // given up, which says nothing about the next one
	}
	if db.opts.CheckpointBytes > 0 {
		db.setGoal(logged, err)
	}
	if err != nil {
		db.growth.failure.Store(&err)
		return err
	}
	db.growth.failure.Store(nil)
	db.growth.covered.Store(int64(logged))
	db.growth.indexes.Store(&indexesLeft{bytes: db.indexMemory(), at: time.Now(), logged: logged})
	db.measureLog()
	db.askForCompaction()
	db.collector.GiveBack() // what the indexes had in memory for this checkpoint
	db.shareBudget()
	return nil
}

func (db *DB) setGoal(logged uint64, err error) {
	if err == nil {
		db.expectCheckpoint(logged, 0)
	} else {
		db.growth.next.Store(db.manager.Logged() + uint64(db.opts.CheckpointBytes)/4 + 1)
	}
}

// Checkpoint writes a checkpoint of everything that is durable now, so that an
// Open after a crash replays only what comes later. It does not hold up
// transactions. ErrReadOnly on a read-only database.
func (db *DB) Checkpoint(ctx context.Context) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if db.checkpointer == nil {
		return fault.ErrReadOnly
	}
	return db.untilClosed(ctx, db.checkpoint)
}

// untilClosed runs f with a context that ends with Close too.
func (db *DB) untilClosed(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.life, cancel)()
	err := f(ctx)
	if err != nil && db.life.Err() != nil {
		return fmt.Errorf("%w: %w", fault.ErrClosed, err)
	}
	return err
}

// cacheFill bounds what is read ahead of the mapped files after an Open; with a
// memory budget half of that is the bound.
const cacheFill = 1 << 30

func (db *DB) fillCache(ctx context.Context) {
	limit := int64(cacheFill)
	if db.budget > 0 {
		limit = min(limit, db.budget/2)
	}
	if err := db.state.FillCache(ctx, limit); err != nil {
		db.opts.Logger.Warn("files not read ahead", "error", err)
	}
}
