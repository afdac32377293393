package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/torture"
)

// tortureChild is the hidden command that the torture runs itself with.
const tortureChild = "torture-child"

// Values of -workload and -durability.
const (
	allWorkloads  = "all"
	anyDurability = "any"
)

// tortureFlags are the flags of the torture.
type tortureFlags struct {
	rounds, streams                     int
	seconds                             float64
	seed                                uint64
	workload, strategy, durability, dir string
}

func newTorture(s streams) *cobra.Command {
	var f tortureFlags
	cmd := &cobra.Command{
		Use:   "torture",
		Short: "Kill processes that recover, commit, checkpoint, compact and close, and check",
		Long: `Run transactions on a small database in a child process that checkpoints,
compacts and closes it beside them, and kill that with SIGKILL at moments that
hurt, also several times in a row while it recovers. After each round the
database is opened, read-only and then for writing, and checked: everything that
was promised is there and nothing else, the content follows from the workload,
every index agrees with its table. Every few rounds a new database is made, with
another workload, strategy, size of segments and number of streams.

The seed decides databases, options, and which phases are aimed at. The moment
of a kill depends on the machine too, so a seed repeats a run only roughly.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.rounds, "rounds", 100, "rounds; 0: as many as there is time for")
	flags.Float64Var(&f.seconds, "seconds", 0, "begin no round later than that; 0: no limit")
	flags.Uint64Var(&f.seed, "seed", 0, "of databases, options and kills; 0 draws one")
	flags.StringVar(&f.workload, "workload", allWorkloads, "workload: "+strings.Join(torture.Workloads(), ", ")+", or all in turn")
	strategyFlag(cmd, &f.strategy, allStrategies)
	flags.IntVar(&f.streams, "streams", 0, "log streams; 0: from the seed")
	flags.StringVar(&f.durability, "durability", anyDurability, "what commits wait for: sync, none, a time such as 5ms after which they are durable, or any, from the seed")
	flags.StringVar(&f.dir, "dir", "", "absent or empty directory for the databases (default: a temporary one)")
	return cmd
}

func newTortureChild(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    tortureChild + " NAME CONFIG",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return torture.Serve(cmd.Context(), args[0], args[1], s.out)
		},
	}
}

func (f *tortureFlags) run(ctx context.Context, s streams) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	remove, err := directoryFor(f.dir, "rekindle-torture-", &c.Dir)
	if err != nil {
		return err
	}
	p := newProgress(s)
	c.Progress, c.Stderr = p.show, s.err
	fmt.Fprintf(s.err, "seed %d, databases in %s\n", c.Seed, c.Dir)
	report, err := torture.Run(ctx, c)
	p.clear()
	err = errors.Join(err, report.Write(s.out))
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, remove())
	}
	fmt.Fprintf(s.err, `The database and the ledger of what it must hold are kept in %s.
Copy them before you look: an Open for writing recovers, and so changes files; one
with Options.ReadOnly does not. The run was: rekindle torture %s
`, c.Dir, f.line(c.Seed))
	return err
}

// line is the command line that repeats the run.
func (f *tortureFlags) line(seed uint64) string {
	return fmt.Sprintf("-seed %d -rounds %d -seconds %g -workload %s -strategy %s -streams %d -durability %s",
		seed, f.rounds, f.seconds, f.workload, f.strategy, f.streams, f.durability)
}

func (f *tortureFlags) config() (torture.Config, error) {
	executable, err := os.Executable()
	if err != nil {
		return torture.Config{}, err
	}
	c := torture.Config{
		Seed:       f.seed,
		Rounds:     f.rounds,
		Time:       time.Duration(f.seconds * float64(time.Second)),
		Workloads:  []string{f.workload},
		Streams:    f.streams,
		Executable: executable,
		Args:       []string{tortureChild},
	}
	if f.workload == allWorkloads {
		c.Workloads = torture.Workloads()
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32())
	}
	if c.Strategies, err = strategiesNamed(f.strategy); err != nil {
		return c, err
	}
	if c.Durability, err = durabilityNamed(f.durability); err != nil {
		return c, err
	}
	if err := c.Validate(); err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// durabilityNamed returns nil for any.
func durabilityNamed(name string) (*rekindle.Durability, error) {
	d := rekindle.Sync
	switch name {
	case anyDurability:
		return nil, nil
	case "sync":
	case "none":
		d = rekindle.None
	default:
		interval, err := time.ParseDuration(name)
		if err != nil || interval <= 0 {
			return nil, usageError{fmt.Errorf("-durability is sync, none, any or a time, not %q", name)}
		}
		d = rekindle.Interval(interval)
	}
	return &d, nil
}
