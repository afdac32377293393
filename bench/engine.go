package bench

import (
	"context"
	"strings"
	"time"

	"github.com/rekindledb/rekindle"
)

// Checkpoint checkpoints everything committed before the call, also what was
// not waited for: a checkpoint alone describes what is durable already.
func Checkpoint(ctx context.Context, db *rekindle.DB) error {
	if err := Settle(ctx, db); err != nil {
		return err
	}
	return db.Checkpoint(ctx)
}

// Settle returns when everything committed before the call is durable, because
// a writable transaction that changes nothing returns only when all that it saw
// is.
func Settle(ctx context.Context, db *rekindle.DB) error {
	return db.Update(ctx, func(tx *rekindle.Tx) error { return tx.SetDurability(rekindle.Sync) })
}

// IndexPart is how much of a recovery went into the indexes, the part that
// depends on the index strategy.
func IndexPart(r rekindle.RecoveryReport) time.Duration {
	var sum time.Duration
	for _, phase := range r.Phases {
		if strings.HasPrefix(phase.Name, "index") {
			sum += phase.Duration
		}
	}
	return sum
}
