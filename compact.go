package rekindle

import (
	"context"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
)

// compactionRetry is how long the compaction of the log waits after a failure.
const compactionRetry = time.Second

func (db *DB) askForCompaction() { ask(db.compaction) }

// compactWhenDue looks after the size of the log behind every checkpoint.
func (db *DB) compactWhenDue(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.compaction:
		}
		if err := db.compact(ctx); err != nil && ctx.Err() == nil {
			db.opts.Logger.Warn("compaction of the log failed", "error", err)
			sleep(ctx, compactionRetry)
			db.askForCompaction()
		}
	}
}

// compact moves rows to the end of the log and writes the checkpoints that let
// go of the segments they were in, until the log takes what it should. What a
// pass may write is bounded, because a crash makes recovery replay it.
func (db *DB) compact(ctx context.Context) error {
	limit := db.opts.CheckpointBytes
	if limit < 0 {
		limit = defaultCheckpointBytes
	}
	for {
		segments, err := db.checkpointer.Compact(ctx, limit)
		if err != nil {
			return err
		}
		owed := segments > 0
		if !owed {
			owed, err = db.checkpointer.Owed()
		}
		if err != nil || !owed {
			return err
		}
		if err := db.writeCheckpoint(ctx, db.checkpointer.Renew); err != nil || db.opts.eager {
			return err
		}
	}
}

// Compact brings the log down to what it should take at most: twice the bytes of
// the live rows and two segments a stream, plus what has been logged since the
// checkpoint before the last one. It moves rows and writes checkpoints, which does
// not hold up transactions. A database with automatic checkpoints does this by
// itself. ErrReadOnly on a read-only database.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if db.checkpointer == nil {
		return fault.ErrReadOnly
	}
	return db.untilClosed(ctx, db.compact)
}
