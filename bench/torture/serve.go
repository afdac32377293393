package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/task"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// Names of what a child does.
const (
	lifeTask  = "torture-life"
	loadTask  = "torture-load"
	checkTask = "torture-check"
)

// Serve is the main function of a child.
func Serve(ctx context.Context, name, config string, out io.Writer) error {
	if name != lifeTask {
		return task.Serve(ctx, map[string]task.Func{loadTask: serveLoad, checkTask: serveCheck}, name, config, out)
	}
	var l Life
	if err := json.Unmarshal([]byte(config), &l); err != nil {
		return err
	}
	defer watchdog(l.Patience)()
	return live(ctx, l, out)
}

// serveLoad makes a database with what its workload needs from the start.
func serveLoad(ctx context.Context, config []byte, r *task.Reporter) error {
	var c Check
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	defer watchdog(c.Patience)()
	db, err := rekindle.Open(ctx, c.Database.Dir, c.Options.engine(&c.Database))
	if err != nil {
		return err
	}
	tables, err := tpcc.OpenTables(ctx, db)
	if err == nil {
		err = tpcc.Load(ctx, tables, tpcc.LoadOptions{Scale: c.Database.Scale, Seed: c.Database.Seed})
	}
	if err = errors.Join(err, db.Close(ctx)); err != nil {
		return err
	}
	return r.Result(struct{}{})
}

func serveCheck(ctx context.Context, config []byte, r *task.Reporter) error {
	var c Check
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	defer watchdog(c.Patience)()
	v, err := check(ctx, c)
	if err != nil {
		return err
	}
	return r.Result(v)
}

// watchdog ends the process, with the stacks of all goroutines, unless stop is
// called in time.
func watchdog(d time.Duration) (stop func() bool) {
	return time.AfterFunc(d, func() {
		fmt.Fprintf(os.Stderr, "no end after %v:\n", d)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2) // as well as it can be shown
		os.Exit(exitHung)
	}).Stop
}

// exitHung is the exit code of a process that hung.
const exitHung = 3
