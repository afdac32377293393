package rekindle

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/txn"
)

// Tx is a transaction. It belongs to one goroutine at a time; a call while
// another is under way returns ErrTxBusy. When it has ended every call returns
// ErrTxDone.
type Tx struct {
	inner txn.Tx
	db    *DB
}

// Begin starts a transaction, which must be ended by Commit or Rollback. View
// and Update are more convenient and cannot forget to. If ctx has ended Begin
// fails; the transaction does not end with it. A writable one first waits, for 0.1 s
// at most and not after ctx has ended, while checkpoints or the compaction of the log
// do not keep up with writers.
func (db *DB) Begin(ctx context.Context, writable bool) (*Tx, error) {
	if db.closed.Load() { // before all that could be said of it when it was open
		return nil, fault.ErrClosed
	}
	if writable {
		if err := db.stalled(); err != nil {
			return nil, err
		}
		db.slowDown(ctx)
	}
	inner, err := db.manager.Begin(ctx, writable)
	if err != nil {
		return nil, err
	}
	return &Tx{inner: inner, db: db}, nil
}

// Commit makes the changes visible and, in a database with the default
// durability, waits until they are on disk. With any error but
// ErrCommitUnknown nothing was committed. The transaction has ended either way.
func (tx *Tx) Commit(ctx context.Context) error {
	err := tx.inner.Commit(ctx)
	tx.db.noticeGrowth()
	return err
}

// Rollback drops the changes. After Commit it returns ErrTxDone and does
// nothing, so it can be deferred.
func (tx *Tx) Rollback() error { return tx.inner.Rollback() }

// SetDurability chooses what the commit of this transaction waits for.
func (tx *Tx) SetDurability(d Durability) error {
	if d < None {
		return tx.unlessEnded(tx.db.catalog.byID(systemTable), d.invalid())
	}
	return tx.inner.SetDurability(d.log())
}

// unlessEnded returns the error that a call on a table has for its arguments, or
// what goes before that: that the transaction has ended, or the database is closed.
func (tx *Tx) unlessEnded(t *txn.Table, err error) error {
	c, first := tx.inner.Enter(t)
	if first != nil {
		return first
	}
	c.Leave()
	return err
}

// View runs fn in a read-only transaction and returns its error. The transaction
// ends with fn, also if that panics.
func (db *DB) View(ctx context.Context, fn func(tx *Tx) error) error {
	tx, err := db.Begin(ctx, false)
	if err != nil {
		return err
	}
	defer tx.end()
	return fn(tx)
}

// end rolls back what fn has left open. If fn has left a goroutine inside of a
// call, that is waited for: a transaction that nobody ends would hold back the
// collector for good.
func (tx *Tx) end() {
	for errors.Is(tx.inner.Rollback(), ErrTxBusy) {
		runtime.Gosched()
	}
}

// Update runs fn in a transaction and commits it if fn returns nil. After a
// conflict it runs fn again, in a new transaction, until ctx ends or
// Options.MaxRetries is reached; fn must therefore have no effects outside of
// the transaction, and neither commit nor roll back itself. An error of fn, or a
// panic, rolls back; the error is returned.
func (db *DB) Update(ctx context.Context, fn func(tx *Tx) error) error {
	for attempt := 0; ; attempt++ {
		err := db.tryUpdate(ctx, fn)
		if err == nil || !errors.Is(err, ErrConflict) || attempt >= db.opts.MaxRetries {
			return err
		}
		if pauseErr := pause(ctx, attempt); pauseErr != nil {
			return errors.Join(pauseErr, err)
		}
	}
}

func (db *DB) tryUpdate(ctx context.Context, fn func(tx *Tx) error) error {
	tx, err := db.Begin(ctx, true)
	if err != nil {
		return err
	}
	defer tx.end()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

const (
	yieldAttempts = 4 // retries that only yield the processor
	pauseMax      = 5 * time.Millisecond
	pauseFirst    = 20 * time.Microsecond
)

// pause backs off before a retry: the winner of the conflict is gone in
// microseconds if it is running, so the first retries only let it run.
func pause(ctx context.Context, attempt int) error {
	if attempt < yieldAttempts {
		runtime.Gosched()
		return ctx.Err()
	}
	d := min(pauseMax, pauseFirst<<min(attempt-yieldAttempts, 16))
	timer := time.NewTimer(rand.N(d) + 1)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
