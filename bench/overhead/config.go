package overhead

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/task"
)

// Config says what to measure.
type Config struct {
	Strategies []string
	Rows       []int64
	Load       Load
	Pairs      int // of slices, for each strategy and number of rows

	Dir    string            // of the databases; each is removed when it is done with
	Runner task.Runner       // serves Tasks
	Each   func(*Case) error // takes each result; its error ends the run
}

// Load is the work that goes on.
type Load struct {
	Indexes int  // of the table, the primary key included
	Writers int  // concurrent clients
	Reads   int  // rows that a transaction reads before it changes one
	Durable bool // a commit waits for the disk
	Slice   time.Duration
	Every   time.Duration // from the begin of a checkpoint to that of the next; 0 = without a pause
}

// Case is a strategy with a number of rows and what was measured.
type Case struct {
	Strategy string
	Rows     int64
	Result   Result
}

const (
	maxRows  = 1 << 40
	maxSlice = 100_000 * Window
)

// Validate checks the ranges.
func (c *Config) Validate() error {
	errs := []error{
		bench.InRange("the number of indexes", int64(c.Load.Indexes), 1, dataset.MaxIndexes),
		bench.InRange("writers", int64(c.Load.Writers), 1, 10_000),
		bench.InRange("reads", int64(c.Load.Reads), 0, 10_000),
		bench.InRange("runs", int64(c.Pairs), 1, 1000),
		bench.InRange("the milliseconds of a slice", c.Load.Slice.Milliseconds(), Window.Milliseconds(), maxSlice.Milliseconds()),
		bench.InRange("the milliseconds between checkpoints", c.Load.Every.Milliseconds(), 0, c.Load.Slice.Milliseconds()),
	}
	for _, rows := range c.Rows {
		errs = append(errs, bench.InRange("rows", rows, int64(c.Load.Writers)*minShare, maxRows))
	}
	return errors.Join(errs...)
}

const measureTask = "overhead-measure"

// Tasks are what the other processes of Run do.
func Tasks() map[string]task.Func { return map[string]task.Func{measureTask: measure} }

// Run measures each strategy with each number of rows.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return bench.EachDatabase(c.Dir, c.Strategies, c.Rows, func(dir, strategy string, rows int64) error {
		return c.database(ctx, dir, strategy, rows)
	})
}

// database measures on one database, made for this.
func (c *Config) database(ctx context.Context, dir, strategy string, rows int64) error {
	found := Case{Strategy: strategy, Rows: rows}
	config := measureConfig{Dir: dir, Strategy: strategy, Rows: rows, Load: c.Load, Pairs: c.Pairs}
	if err := c.Runner.Run(ctx, measureTask, config, &found.Result, task.Await); err != nil {
		return err
	}
	return c.Each(&found)
}

type measureConfig struct {
	Dir      string
	Strategy string
	Rows     int64
	Load     Load
	Pairs    int
}

func measure(ctx context.Context, config []byte, r *task.Reporter) error {
	var c measureConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	m, err := open(ctx, &c, r)
	if err != nil {
		return err
	}
	err = m.run(ctx)
	if err = errors.Join(err, m.db.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return r.Result(&m.result)
}
