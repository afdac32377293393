package logstream

import (
	"context"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Acknowledge is the wait at the end of a commit, after Publish. With sync it
// returns when the commit is durable, without when it is visible; a log in
// mode Interval then waits too while some commit has been waiting for its
// flush for longer than the interval, so that a crash takes back no more than
// that. fault.ErrCommitUnknown means that ctx ended or the log failed before;
// the commit is visible even then.
func (l *Log) Acknowledge(ctx context.Context, t Ticket, sync bool) error {
	if sync || l.overdue() {
		if err := l.WaitDurable(ctx, t.Round); err != nil {
			l.WaitVisible(t.CTS)
			return err
		}
		return nil
	}
	l.WaitVisible(t.CTS)
	if err := l.Failed(); err != nil && l.durableRound.Load() < t.Round {
		return fmt.Errorf("%w: %w", fault.ErrCommitUnknown, err)
	}
	return nil
}

// overdue reports whether the promise of mode Interval is about to be broken.
func (l *Log) overdue() bool {
	if l.opt.Durability.Mode != Interval {
		return false
	}
	oldest := l.oldest.Load()
	return oldest != 0 && l.now()-oldest > int64(l.opt.Durability.Interval)
}
