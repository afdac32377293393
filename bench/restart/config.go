package restart

import (
	"errors"
	"fmt"
	"time"

	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/task"
)

// Stop is how the writing process ends.
type Stop string

const (
	Kill  Stop = "kill"  // SIGKILL
	Close Stop = "close" // the database is closed
)

// Config says what to measure: each combination of the lists.
type Config struct {
	Strategies []string
	Rows       []int64
	Tails      []int64 // records behind the last checkpoint
	Colds      []bool  // whether the page cache is dropped before
	Stops      []Stop

	Indexes     int           // of the table, the primary key included
	Checkpoints int           // while loading, evenly spaced, the last one at the end
	Inserts     int           // percent of the tail that inserts, the others update
	Writers     int           // concurrent clients that write the tail
	Runs        int           // of each combination
	Reading     time.Duration // how long to read after the open

	Dir    string                 // of the databases; each is removed when it is done with
	Drop   func(dir string) error // makes the cache cold: DropCaches or DropFiles
	Runner task.Runner            // serves Tasks
	Each   func(*Case) error      // takes each combination when it is measured; its error ends the run
}

const (
	maxRows    = 1 << 40 // numbers beyond are left to the inserts of the tail
	maxReading = 100_000 * Window
)

// Validate checks the ranges.
func (c *Config) Validate() error {
	errs := []error{
		bench.InRange("the number of indexes", int64(c.Indexes), 1, dataset.MaxIndexes),
		bench.InRange("checkpoints", int64(c.Checkpoints), 1, 1000),
		bench.InRange("the percentage of inserts", int64(c.Inserts), 0, 100),
		bench.InRange("writers", int64(c.Writers), 1, 10_000),
		bench.InRange("runs", int64(c.Runs), 1, 1000),
		bench.InRange("the milliseconds to read for", c.Reading.Milliseconds(), Window.Milliseconds(), maxReading.Milliseconds()),
	}
	for _, rows := range c.Rows {
		errs = append(errs, bench.InRange("rows", rows, 1, maxRows))
	}
	for _, tail := range c.Tails {
		errs = append(errs, bench.InRange("the tail", tail, 0, maxRows))
	}
	for _, stop := range c.Stops {
		if stop != Kill && stop != Close {
			errs = append(errs, fmt.Errorf("a process is stopped by %q or %q, not %q", Kill, Close, stop))
		}
	}
	return errors.Join(errs...)
}
