package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle/bench/restart"
)

// recoveryFlags are the flags of the recovery benchmark.
type recoveryFlags struct {
	benchFlags
	tails                         []int64
	cold, drop                    string
	stops                         []string
	inserts, writers, checkpoints int
	seconds                       float64
}

// Values of -cold and -drop.
const (
	coldNo, coldYes, coldBoth = "no", "yes", "both"
	dropAll, dropFiles        = "all", "files"
)

func newBenchRecovery(s streams) *cobra.Command {
	var f recoveryFlags
	cmd := &cobra.Command{
		Use:   "recovery",
		Short: "Time a restart by strategy, rows and length of the log's tail",
		Long: `Load a table, write a tail of durable updates and inserts behind its last
checkpoint, end the process with SIGKILL or by closing the database, and time in
fresh processes: opening, the first read, 10,000 random reads, and how long it
takes until reads are as fast as they get. Times count from the call of Open;
medians are shown. See the package bench/restart for every figure.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.add(cmd, []int64{100_000, 1_000_000}, 5)
	flags := cmd.Flags()
	flags.Int64SliceVar(&f.tails, "tail", []int64{0, 100_000}, "`numbers` of records behind the last checkpoint")
	flags.StringVar(&f.cold, "cold", coldNo, "drop the page cache before: no, yes or both, one after the other")
	flags.Lookup("cold").NoOptDefVal = coldYes
	flags.StringVar(&f.drop, "drop", dropAll, "what -cold drops: all of the machine's cache where permitted, or files of the database only")
	flags.StringSliceVar(&f.stops, "stop", []string{string(restart.Kill), string(restart.Close)}, "how the writing process ends")
	flags.IntVar(&f.inserts, "inserts", 10, "percent of the tail that inserts, the rest updates")
	flags.IntVar(&f.writers, "writers", 64, "clients that write the tail")
	flags.IntVar(&f.checkpoints, "checkpoints", 4, "checkpoints while loading")
	flags.Float64Var(&f.seconds, "seconds", 5, "how long to read after the open")
	return cmd
}

func (f *recoveryFlags) run(ctx context.Context, s streams) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	r, err := f.start(s)
	if err != nil {
		return err
	}
	c.Strategies, c.Dir, c.Runner = r.strategies, r.dir, r.runner
	c.Each = func(measured *restart.Case) error { return r.results.add(measured.Measurements()) }
	return r.run(ctx, func(ctx context.Context) error { return restart.Run(ctx, c) }, restart.WriteTables)
}

func (f *recoveryFlags) config() (restart.Config, error) {
	c := restart.Config{
		Rows:        f.rows,
		Tails:       f.tails,
		Indexes:     f.indexes,
		Checkpoints: f.checkpoints,
		Inserts:     f.inserts,
		Writers:     f.writers,
		Runs:        f.runs,
		Reading:     time.Duration(f.seconds * float64(time.Second)),
	}
	for _, stop := range f.stops {
		c.Stops = append(c.Stops, restart.Stop(stop))
	}
	var known bool
	if c.Colds, known = map[string][]bool{coldNo: {false}, coldYes: {true}, coldBoth: {false, true}}[f.cold]; !known {
		return c, usageError{fmt.Errorf("-cold is %s, %s or %s, not %q", coldNo, coldYes, coldBoth, f.cold)}
	}
	if c.Drop, known = map[string]func(string) error{dropAll: restart.DropCaches, dropFiles: restart.DropFiles}[f.drop]; !known {
		return c, usageError{fmt.Errorf("-drop is %s or %s, not %q", dropAll, dropFiles, f.drop)}
	}
	if err := c.Validate(); err != nil {
		return c, usageError{err}
	}
	return c, nil
}
