package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/tpcc"
	"github.com/rekindledb/rekindle/bench/tpcc/demo"
)

// demoChild is the hidden command that the demo runs itself with.
const demoChild = "demo-child"

// demoFlags are the flags of the demo.
type demoFlags struct {
	warehouses, rounds, terminals int
	seconds                       float64
	seed                          uint64
	scale, dir, strategy          string
	json                          bool
}

func newDemo(s streams) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run TPC-C, kill it, reopen and check, several times",
		Long: `Load a TPC-C database and run the mix of its five transactions with durable
commits in a child process. Kill that with SIGKILL at a random moment, reopen
the database and check that everything acknowledged is there, that TPC-C's
consistency conditions hold and that every index agrees with its table.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.warehouses, "warehouses", 1, "TPC-C warehouses, about 110 MB each")
	flags.IntVar(&f.rounds, "rounds", 5, "how often to kill and reopen")
	flags.Float64Var(&f.seconds, "seconds", 4, "longest time to the kill in a round")
	flags.IntVar(&f.terminals, "terminals", 8, "concurrent clients")
	flags.Uint64Var(&f.seed, "seed", 0, "of data, transactions and kills; 0 draws one")
	flags.StringVar(&f.scale, "scale", "full", "size of a warehouse: full, as TPC-C has it, small or tiny")
	flags.StringVar(&f.dir, "dir", "", "absent or empty directory that keeps the database (default: a temporary one)")
	strategyFlag(cmd, &f.strategy, rekindle.IndexStrategies()[0])
	flags.BoolVar(&f.json, "json", false, "print one JSON object a line instead of a table")
	return cmd
}

func newDemoChild(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    demoChild + " CONFIG",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c demo.ChildConfig
			if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
				return usageError{err}
			}
			return demo.RunChild(cmd.Context(), c, s.out)
		},
	}
}

// run shows one strategy after the other. Several have a directory each.
func (f *demoFlags) run(ctx context.Context, s streams) error {
	strategies, err := strategiesNamed(f.strategy)
	if err != nil {
		return err
	}
	for _, strategy := range strategies {
		one := *f
		one.strategy = strategy
		if f.dir != "" && len(strategies) > 1 {
			one.dir = filepath.Join(f.dir, strategy)
		}
		if err := one.runStrategy(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *demoFlags) runStrategy(ctx context.Context, s streams) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	remove, err := directoryFor(f.dir, "rekindle-demo-", &c.Dir)
	if err != nil {
		return err
	}
	p := newProgress(s)
	c.Progress, c.Stderr = p.show, s.err
	fmt.Fprintf(s.err, "seed %d, warehouses %d, terminals %d, strategy %s, database in %s\n", c.Seed, f.warehouses, f.terminals, f.strategy, c.Dir)
	report, err := demo.Run(ctx, c)
	p.clear()
	err = errors.Join(err, f.print(&report, s))
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, remove())
	}
	fmt.Fprintf(s.err, "The database is kept in %s.\n", c.Dir)
	return err
}

// print shows what there is; a run that ended before its first round has
// nothing to show.
func (f *demoFlags) print(report *demo.Report, s streams) error {
	if len(report.Rounds) == 0 {
		return nil
	}
	if f.json {
		return bench.WriteJSON(s.out, report.Metrics(f.strategy))
	}
	return report.WriteTable(s.out)
}

func (f *demoFlags) config() (demo.Config, error) {
	scale, err := tpcc.ScaleNamed(f.scale, f.warehouses)
	if err != nil {
		return demo.Config{}, usageError{err}
	}
	executable, err := os.Executable()
	if err != nil {
		return demo.Config{}, err
	}
	c := demo.Config{
		Strategy:        f.strategy,
		CheckpointBytes: demo.CheckpointBytes,
		Scale:           scale,
		Rounds:          f.rounds,
		Duration:        time.Duration(f.seconds * float64(time.Second)),
		Seed:            f.seed,
		Terminals:       f.terminals,
		Executable:      executable,
		Args:            []string{demoChild},
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32())
	}
	if err := c.Validate(); err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// directoryFor sets dir to the directory of a flag, or to a temporary one, and
// returns what removes a temporary one. One that is given must not hold anything.
func directoryFor(flag, pattern string, dir *string) (remove func() error, err error) {
	if flag == "" {
		*dir, err = os.MkdirTemp("", pattern)
		return func() error { return os.RemoveAll(*dir) }, err
	}
	*dir = flag
	entries, err := os.ReadDir(flag)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{err}
	}
	if len(entries) > 0 {
		return nil, usageError{fmt.Errorf("directory %s is not empty: new databases are made", flag)}
	}
	return func() error { return nil }, nil
}
