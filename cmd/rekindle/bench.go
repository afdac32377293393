package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/overhead"
	"github.com/rekindledb/rekindle/bench/restart"
	"github.com/rekindledb/rekindle/bench/task"
)

// benchTask is the hidden command that the benchmarks run themselves with.
const benchTask = "bench-task"

func newBench(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure recovery and the cost of checkpoints",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("which benchmark?")}
		},
	}
	cmd.AddCommand(newBenchRecovery(s), newBenchOverhead(s))
	return cmd
}

func newBenchTask(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    benchTask + " NAME CONFIG",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			tasks := restart.Tasks()
			maps.Copy(tasks, overhead.Tasks())
			err := task.Serve(cmd.Context(), tasks, args[0], args[1], s.out)
			if errors.Is(err, task.ErrUnknown) {
				err = usageError{err}
			}
			return err
		},
	}
}

// benchFlags are those that all benchmarks have.
type benchFlags struct {
	strategy, dir, json string
	rows                []int64
	indexes, runs       int
}

func (f *benchFlags) add(cmd *cobra.Command, rows []int64, runs int) {
	flags := cmd.Flags()
	strategyFlag(cmd, &f.strategy, allStrategies)
	flags.StringVar(&f.dir, "dir", "", "directory to put databases in; they are removed (default: a temporary one)")
	flags.StringVar(&f.json, "json", "", "file to write one JSON object a line to; - prints them instead of the table")
	flags.Int64SliceVar(&f.rows, "rows", rows, "`numbers` of rows")
	flags.IntVar(&f.indexes, "indexes", 1, "indexes of the table, the primary key included")
	flags.IntVar(&f.runs, "runs", runs, "how often to measure; the median counts")
}

// benchRun is one run of a benchmark.
type benchRun struct {
	strategies []string
	dir        string
	runner     task.Runner
	results    *benchResults
	progress   *progress
	remove     func() error
}

// start checks the flags and opens what the benchmark needs.
func (f *benchFlags) start(s streams) (*benchRun, error) {
	strategies, err := strategiesNamed(f.strategy)
	if err != nil {
		return nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	results, err := newBenchResults(f.json, s)
	if err != nil {
		return nil, err
	}
	r := &benchRun{strategies: strategies, results: results, progress: newProgress(s), remove: func() error { return nil }}
	r.runner = task.Runner{Executable: executable, Args: []string{benchTask}, Stderr: s.err, Progress: r.progress.show}
	if r.dir = f.dir; r.dir == "" {
		r.dir, err = os.MkdirTemp("", "rekindle-bench-")
		r.remove = func() error { return os.RemoveAll(r.dir) }
	} else {
		err = os.MkdirAll(r.dir, 0o755)
	}
	if err != nil {
		return nil, errors.Join(err, results.close())
	}
	return r, nil
}

// run runs the benchmark and shows what was measured until it ended.
func (r *benchRun) run(ctx context.Context, benchmark func(context.Context) error, tables func(io.Writer, []bench.Measurement) error) error {
	err := benchmark(ctx)
	r.progress.clear()
	if r.results.table && len(r.results.lines) > 0 {
		err = errors.Join(err, tables(r.results.out, r.results.lines))
	}
	return errors.Join(err, r.results.close(), r.remove())
}

// benchResults writes measurements as they come.
type benchResults struct {
	out   io.Writer // of the table
	table bool
	json  io.Writer // nil = none
	file  *os.File  // to be closed; nil = none
	lines []bench.Measurement
}

func newBenchResults(name string, s streams) (*benchResults, error) {
	r := &benchResults{out: s.out, table: name != "-"}
	switch name {
	case "":
	case "-":
		r.json = s.out
	default:
		file, err := os.Create(name)
		if err != nil {
			return nil, usageError{err}
		}
		r.json, r.file = file, file
	}
	return r, nil
}

func (r *benchResults) add(lines []bench.Measurement) error {
	r.lines = append(r.lines, lines...)
	if r.json == nil {
		return nil
	}
	return bench.WriteJSON(r.json, lines)
}

func (r *benchResults) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
