package rekindle

import (
	"context"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/recovery"
)

const (
	// compactionRetry is how long the compaction of the log waits after a failure.
	compactionRetry = 10 * time.Second
	// compactionQuiet is how long nothing must have been logged before it writes a
	// checkpoint that would otherwise come with the next commits.
	compactionQuiet = 500 * time.Millisecond
	// settlingRounds is how many passes and checkpoints it takes until both kept
	// checkpoints have behind them what was in the log, and until what was emptied
	// then is gone.
	settlingRounds = 4
	// crowdedPause is how long a transaction waits that begins to write when the log
	// takes twice its bound, and in proportion when it takes less. So writers never
	// leave compaction and checkpoints behind for good, and where those are stuck they
	// go on.
	crowdedPause = 100 * time.Millisecond
)

// compacts reports whether the log is compacted by itself.
func (db *DB) compacts() bool {
	return db.checkpointer != nil && db.opts.CheckpointBytes > 0 && !db.opts.uncompacted
}

func (db *DB) askForCompaction() { ask(db.compaction) }

// compactWhenDue looks after the size of the log behind every checkpoint.
func (db *DB) compactWhenDue(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.compaction:
		}
		if err := db.compactNow(ctx); err != nil && ctx.Err() == nil {
			db.opts.Logger.Warn("compaction of the log failed", "error", err)
			if db.log.Failed() != nil {
				return // nothing is written any more
			}
			sleep(ctx, compactionRetry)
			db.askForCompaction()
		}
	}
}

// measureLog lets slowDown know what the log takes behind a checkpoint.
func (db *DB) measureLog() {
	if !db.compacts() {
		return
	}
	if err := db.checkpointer.Measure(db.opts.CheckpointBytes); err != nil {
		db.opts.Logger.Warn("log not measured", "error", err)
	}
}

// slowDown keeps writers from filling the log faster than space in it comes back.
func (db *DB) slowDown(ctx context.Context) {
	if db.checkpointer == nil || db.opts.CheckpointBytes <= 0 {
		return
	}
	if c := max(db.checkpointer.Crowding(), db.tailCrowding()); c > 0 {
		sleep(ctx, time.Duration(c*float64(crowdedPause)))
	}
}

// compactNow makes one pass. The checkpoint behind it is that of the next commits,
// unless the log is too large or there are none.
func (db *DB) compactNow(ctx context.Context) error {
	pass, err := db.compactionPass(ctx)
	if err != nil || !pass.Wanted || !pass.Pressing && !db.comesToRest(ctx) {
		return err
	}
	return db.renew(ctx)
}

// comesToRest returns true when nothing has been logged for some time, and false
// when there is another checkpoint before that.
func (db *DB) comesToRest(ctx context.Context) bool {
	timer := time.NewTimer(compactionQuiet)
	defer timer.Stop()
	for {
		logged := db.manager.Logged()
		select {
		case <-ctx.Done():
			return false
		case <-db.compaction:
			db.askForCompaction()
			return false
		case <-timer.C:
		}
		if db.manager.Logged() == logged {
			return true
		}
		timer.Reset(compactionQuiet)
	}
}

// passBytes bounds what a pass may write, because a crash makes recovery replay it.
func (db *DB) passBytes() int64 {
	if db.opts.CheckpointBytes < 0 {
		return defaultCheckpointBytes
	}
	return db.opts.CheckpointBytes
}

// compactionPass moves rows to the end of the log.
func (db *DB) compactionPass(ctx context.Context) (recovery.Pass, error) {
	return db.checkpointer.Compact(ctx, db.passBytes())
}

// renew writes the checkpoint that lets go of what a pass has emptied.
func (db *DB) renew(ctx context.Context) error {
	return db.writeCheckpoint(ctx, db.checkpointer.Renew)
}

// compact makes passes and checkpoints until the log takes what it should, or has
// made as many as the log that it met can need: it does not run after what others
// log meanwhile.
func (db *DB) compact(ctx context.Context) error {
	met := int64(len(db.log.Segments())) * db.state.Header.SegmentBytes
	partial := met / db.passBytes()
	for complete := 0; complete < settlingRounds; {
		pass, err := db.compactionPass(ctx)
		if err != nil || !pass.Wanted {
			return err
		}
		if err := db.renew(ctx); err != nil || db.opts.eager {
			return err
		}
		if pass.Partial && partial > 0 {
			partial--
		} else {
			complete++
		}
	}
	return nil
}

// Compact brings the log down to what it should take at most: twice the bytes of
// the live rows and two segments a stream, plus what has been logged since the
// checkpoint before the last one. It moves rows and writes checkpoints, which does
// not hold up transactions; what they log meanwhile may be left to the next call. A
// database with automatic checkpoints does this by itself. ErrReadOnly on a read-only
// database.
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
