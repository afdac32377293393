package restart

import (
	"context"
	"fmt"

	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/task"
)

// Case is one combination and what its runs showed.
type Case struct {
	Strategy string
	Rows     int64
	Tail     int64
	Cold     bool
	Stop     Stop
	Samples  []Sample
}

// Names of the tasks.
const (
	loadTask    = "recovery-load"
	tailTask    = "recovery-tail"
	measureTask = "recovery-measure"
)

// Tasks are what the other processes of Run do.
func Tasks() map[string]task.Func {
	return map[string]task.Func{loadTask: load, tailTask: writeTail, measureTask: measure}
}

// Run measures all combinations.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return bench.EachDatabase(c.Dir, c.Strategies, c.Rows, func(dir, strategy string, rows int64) error {
		return c.database(ctx, base{Dir: dir, Strategy: strategy, Indexes: c.Indexes, Rows: rows})
	})
}

// database measures everything on one database, made for this.
func (c *Config) database(ctx context.Context, b base) error {
	var done struct{}
	if err := c.Runner.Run(ctx, loadTask, loadConfig{b, c.Checkpoints}, &done, task.Await); err != nil {
		return err
	}
	tails := 0
	for _, stop := range c.Stops {
		for _, tail := range c.Tails {
			tails++
			if err := c.tail(ctx, b, stop, tail, tails); err != nil {
				return err
			}
		}
	}
	return nil
}

// tail measures on one state of the database.
func (c *Config) tail(ctx context.Context, b base, stop Stop, tail int64, number int) error {
	end := task.Await
	if stop == Kill {
		end = task.Kill
	}
	config := tailConfig{base: b, Tail: tail, Number: number, Stop: stop, Inserts: c.Inserts, Writers: c.Writers}
	var done struct{}
	if err := c.Runner.Run(ctx, tailTask, config, &done, end); err != nil {
		return err
	}
	for _, cold := range c.Colds {
		measured := &Case{Strategy: b.Strategy, Rows: b.Rows, Tail: tail, Cold: cold, Stop: stop}
		if err := c.measure(ctx, b, measured); err != nil {
			return err
		}
		if err := c.Each(measured); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) measure(ctx context.Context, b base, m *Case) error {
	for run := range c.Runs {
		if m.Cold {
			if err := c.Drop(b.Dir); err != nil {
				return fmt.Errorf("drop the cache: %w", err)
			}
		}
		var s Sample
		config := measureConfig{base: b, Seed: uint64(run), Reading: c.Reading}
		if err := c.Runner.Run(ctx, measureTask, config, &s, task.Kill); err != nil {
			return err
		}
		if m.Stop == Kill && s.Recovery.RecordsReplayed < m.Tail {
			return fmt.Errorf("%d records replayed, of %d that were durable", s.Recovery.RecordsReplayed, m.Tail)
		}
		m.Samples = append(m.Samples, s)
	}
	return nil
}
