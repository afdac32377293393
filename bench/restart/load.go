package restart

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/task"
)

// base names the database, for all tasks.
type base struct {
	Dir      string
	Strategy string
	Indexes  int
	Rows     int64 // loaded
}

// openDB opens the database so that it checkpoints on request only.
func (b *base) openDB(ctx context.Context) (*rekindle.DB, error) {
	return rekindle.Open(ctx, b.Dir, &rekindle.Options{IndexStrategy: b.Strategy, CheckpointBytes: -1})
}

func (b *base) open(ctx context.Context) (*rekindle.DB, dataset.Table, error) {
	db, err := b.openDB(ctx)
	if err != nil {
		return nil, nil, err
	}
	table, err := dataset.Open(ctx, db, b.Indexes)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(ctx))
	}
	return db, table, nil
}

type loadConfig struct {
	base
	Checkpoints int
}

// load makes the database.
func load(ctx context.Context, config []byte, r *task.Reporter) error {
	var c loadConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	db, table, err := c.open(ctx)
	if err != nil {
		return err
	}
	err = c.fill(ctx, db, table, r)
	if err = errors.Join(err, db.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return r.Result(struct{}{})
}

// fill loads the rows in as many parts as there are checkpoints.
func (c *loadConfig) fill(ctx context.Context, db *rekindle.DB, table dataset.Table, r *task.Reporter) error {
	parts := uint64(c.Checkpoints)
	rows := uint64(c.Rows)
	for i := range parts {
		from, to := rows*i/parts, rows*(i+1)/parts
		err := dataset.Load(ctx, db, table, from, to, func(done, _ int64) {
			r.Progress("loading "+c.Strategy+" row", int64(from)+done, c.Rows)
		})
		if err == nil {
			err = bench.Checkpoint(ctx, db)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
