package rekindle

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/fault"
)

// growth decides when the log has grown enough for a checkpoint.
type growth struct {
	next    atomic.Uint64 // checkpoint when so many bytes have been logged
	limit   atomic.Uint64 // refuse writers here while checkpoints fail
	due     chan struct{}
	failure atomic.Pointer[error] // of the last checkpoint
}

// stallFactor times CheckpointBytes is how far the log's tail may grow while
// checkpoints fail.
const stallFactor = 16

// start begins the background work.
func (db *DB) start() {
	ctx, cancel := context.WithCancel(context.Background())
	db.stop = cancel
	db.growth.due = make(chan struct{}, 1)
	if db.opts.ReadOnly {
		return
	}
	db.background.Go(func() {
		db.collector.Settle(ctx) // suspects that recovery brought along
		db.recycleOrdinals(ctx)
		db.collector.Run(ctx)
	})
	if db.opts.CheckpointBytes > 0 {
		db.expectCheckpoint(db.manager.Logged())
		db.background.Go(func() { db.checkpointWhenDue(ctx) })
	}
}

// recycledOrdinals bounds how many free ordinals of a table are looked up after
// an Open; the rest is found by a later one.
const recycledOrdinals = 1 << 20

// recycleOrdinals gives the allocators the ordinals that recovery found free.
// Tables whose indexes were rebuilt have had theirs counted on the way.
func (db *DB) recycleOrdinals(ctx context.Context) {
	if !db.state.Strategy.Persistent() {
		return
	}
	for _, t := range db.catalog.tables() {
		if ctx.Err() != nil {
			return
		}
		if _, err := t.Rows.FreeOrdinals(1, recycledOrdinals, t.IDs.Free); err != nil {
			db.opts.Logger.Warn("free rows not found", "table", t.Name(), "error", err)
		}
	}
}

func (db *DB) expectCheckpoint(logged uint64) {
	bytes := uint64(db.opts.CheckpointBytes)
	db.growth.limit.Store(logged + stallFactor*bytes)
	db.growth.next.Store(logged + bytes)
}

// noticeGrowth asks for a checkpoint if one is due.
func (db *DB) noticeGrowth() {
	next := db.growth.next.Load()
	if next == 0 || db.manager.Logged() < next {
		return
	}
	select {
	case db.growth.due <- struct{}{}:
	default: // asked for already
	}
}

// stalled refuses writers when the tail has grown too long because checkpoints
// keep failing.
func (db *DB) stalled() error {
	failure := db.growth.failure.Load()
	if failure == nil || db.manager.Logged() < db.growth.limit.Load() {
		return nil
	}
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
		}
	}
}

// checkpoint writes one and sets the next goal; after a failure that is nearer.
func (db *DB) checkpoint(ctx context.Context) error {
	logged := db.manager.Logged()
	_, err := db.checkpointer.Run(ctx)
	if err != nil {
		db.growth.failure.Store(&err)
		db.growth.next.Store(db.manager.Logged() + uint64(max(0, db.opts.CheckpointBytes))/4 + 1)
		return err
	}
	db.growth.failure.Store(nil)
	if db.opts.CheckpointBytes > 0 {
		db.expectCheckpoint(logged)
	}
	return nil
}

// Checkpoint writes a checkpoint of everything that is durable now, so that an
// Open after a crash replays only what comes later. It does not hold up
// transactions. ErrReadOnly on a read-only database.
func (db *DB) Checkpoint(ctx context.Context) error {
	if db.closed.Load() {
		return fault.ErrClosed
	}
	if db.checkpointer == nil {
		return fault.ErrReadOnly
	}
	db.background.Add(1) // Close waits for it before it takes things down
	defer db.background.Done()
	if db.closed.Load() {
		return fault.ErrClosed
	}
	return db.checkpoint(ctx)
}
