package dataset

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle"
)

// loadBatch is the number of rows of one loading transaction.
const loadBatch = 1000

// Load inserts the rows with the numbers in [from, to) without waiting for the
// disk, on all processors. Progress is called by several goroutines.
func Load(ctx context.Context, db *rekindle.DB, t Table, from, to uint64, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := loader{db: db, to: to, progress: progress, total: int64(to - from)}
	l.next.Store(from)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			if err := l.run(ctx, t.Session()); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

type loader struct {
	db       *rekindle.DB
	to       uint64
	next     atomic.Uint64
	done     atomic.Int64
	total    int64
	progress func(done, total int64)
}

func (l *loader) run(ctx context.Context, s Session) error {
	for {
		last := l.next.Add(loadBatch)
		first := last - loadBatch
		if first >= l.to {
			return nil
		}
		last = min(last, l.to)
		if err := l.insert(ctx, s, first, last); err != nil {
			return err
		}
		l.progress(l.done.Add(int64(last-first)), l.total)
	}
}

func (l *loader) insert(ctx context.Context, s Session, first, last uint64) error {
	return l.db.Update(ctx, func(tx *rekindle.Tx) error {
		if err := tx.SetDurability(rekindle.None); err != nil {
			return err
		}
		for number := first; number < last; number++ {
			if err := s.Insert(tx, Key(number)); err != nil {
				return err
			}
		}
		return nil
	})
}
