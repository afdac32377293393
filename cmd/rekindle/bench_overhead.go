package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle/bench/overhead"
)

// overheadFlags are the flags of the overhead benchmark.
type overheadFlags struct {
	benchFlags
	writers, reads int
	seconds, every float64
	relaxed        bool
}

func newBenchOverhead(s streams) *cobra.Command {
	var f overheadFlags
	cmd := &cobra.Command{
		Use:   "overhead",
		Short: "Compare throughput and latency with and without checkpoints",
		Long: `Load a table and run transactions on it, in turns with and without
checkpoints, and show throughput, latency of commits, memory of indexes, and
what the checkpoints took and wrote. See the package bench/overhead for every
figure.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.add(cmd, []int64{1_000_000}, 3)
	flags := cmd.Flags()
	flags.IntVar(&f.writers, "writers", 16, "concurrent clients")
	flags.IntVar(&f.reads, "reads", 4, "rows that a transaction reads before it changes one")
	flags.Float64Var(&f.seconds, "seconds", 10, "length of a slice with or without checkpoints")
	flags.Float64Var(&f.every, "every", 5, "seconds from one checkpoint to the next; 0: without a pause")
	flags.BoolVar(&f.relaxed, "relaxed", false, "commits do not wait for the disk")
	return cmd
}

func (f *overheadFlags) run(ctx context.Context, s streams) error {
	c := f.config()
	if err := c.Validate(); err != nil {
		return usageError{err}
	}
	r, err := f.start(s)
	if err != nil {
		return err
	}
	c.Strategies, c.Dir, c.Runner = r.strategies, r.dir, r.runner
	c.Each = func(measured *overhead.Case) error { return r.results.add(measured.Measurements()) }
	return r.run(ctx, func(ctx context.Context) error { return overhead.Run(ctx, c) }, overhead.WriteTables)
}

func (f *overheadFlags) config() overhead.Config {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return overhead.Config{
		Rows:  f.rows,
		Pairs: f.runs,
		Load: overhead.Load{
			Indexes: f.indexes,
			Writers: f.writers,
			Reads:   f.reads,
			Durable: !f.relaxed,
			Slice:   seconds(f.seconds),
			Every:   seconds(f.every),
		},
	}
}
