package restart

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/task"
)

type tailConfig struct {
	base
	Tail    int64
	Number  int // of the tail, each of which inserts other rows
	Stop    Stop
	Inserts int
	Writers int
}

// writeTail leaves a database with a tail behind a fresh checkpoint. When that
// is durable it reports, and waits to be killed, or closes the database first.
func writeTail(ctx context.Context, config []byte, r *task.Reporter) error {
	var c tailConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	db, table, err := c.open(ctx)
	if err != nil {
		return err
	}
	if db.RecoveryReport().RecordsReplayed > 0 {
		err = bench.Checkpoint(ctx, db)
	}
	w := tailWriter{config: &c, db: db, table: table, reporter: r}
	if err == nil {
		err = w.run(ctx)
	}
	if err = errors.Join(err, db.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return r.Result(struct{}{})
}

// tailWriter counts what the clients have begun and what is durable.
type tailWriter struct {
	config   *tailConfig
	db       *rekindle.DB
	table    dataset.Table
	reporter *task.Reporter

	begun, durable atomic.Int64
}

// run returns when the tail is durable if that is all; one that is to be killed
// goes on until it is.
func (w *tailWriter) run(ctx context.Context) error {
	kill := w.config.Stop == Kill
	if w.config.Tail == 0 {
		return w.awaitKill(ctx, kill)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var clients sync.WaitGroup
	for i := range w.config.Writers {
		clients.Go(func() {
			if err := w.client(ctx, uint64(i), kill); err != nil {
				cancel(err)
			}
		})
	}
	clients.Wait()
	return context.Cause(ctx)
}

func (w *tailWriter) awaitKill(ctx context.Context, kill bool) error {
	if !kill {
		return nil
	}
	if err := w.reporter.Result(struct{}{}); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (w *tailWriter) client(ctx context.Context, seed uint64, kill bool) error {
	rng := rand.New(rand.NewPCG(seed, uint64(w.config.Number)))
	s := w.table.Session()
	for {
		n := w.begun.Add(1) - 1
		if n >= w.config.Tail && !kill {
			return nil
		}
		if err := w.write(ctx, s, n, rng); err != nil {
			return err
		}
		done := w.durable.Add(1)
		w.reporter.Progress("writing tail record", done, w.config.Tail)
		if done == w.config.Tail && kill {
			if err := w.reporter.Result(struct{}{}); err != nil {
				return err
			}
		}
	}
}

// write commits the n-th record: inserts are spread evenly among updates of
// random rows.
func (w *tailWriter) write(ctx context.Context, s dataset.Session, n int64, rng *rand.Rand) error {
	inserts := int64(w.config.Inserts)
	insert := (n+1)*inserts/100 > n*inserts/100
	fresh := dataset.Key(uint64(w.config.Number)<<40 + uint64(n)) // beyond maxRows
	loaded := dataset.Key(rng.Uint64N(uint64(w.config.Rows)))
	return w.db.Update(ctx, func(tx *rekindle.Tx) error {
		if insert {
			return s.Insert(tx, fresh)
		}
		return s.Update(tx, loaded, uint64(n)+1)
	})
}
