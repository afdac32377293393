// Package task runs a part of a benchmark in a process of its own and hears
// what comes of it.
//
// The parent starts an executable with the name of the task and its
// configuration as the last two arguments. The child writes messages to its
// standard output, one JSON object a line: progress, and one result. What it
// writes to its standard error is for the user.
package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rekindledb/rekindle/bench/child"
)

// message is one line from the child.
type message struct {
	Phase  string          `json:"phase,omitempty"`
	Done   int64           `json:"done,omitempty"`
	Total  int64           `json:"total,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Runner starts children.
type Runner struct {
	Executable string
	Args       []string // before the name of the task
	Env        []string // added to the parent's
	Stderr     io.Writer
	Progress   func(phase string, done, total int64) // nil = none
}

// End says what becomes of a child that has reported its result.
type End bool

const (
	Await End = false // it ends by itself
	Kill  End = true  // it is killed at once, with SIGKILL
)

// Run runs a task to its end, or to that of ctx, which kills it. Config and
// result cross the process border as JSON; result is a pointer.
func (r *Runner) Run(ctx context.Context, name string, config, result any, end End) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	args := append(r.Args[:len(r.Args):len(r.Args)], name, string(text))
	p, err := child.Start(r.Executable, args, r.Env, r.Stderr)
	if err != nil {
		return err
	}
	kill := sync.OnceValue(p.Kill)
	defer context.AfterFunc(ctx, func() { _ = kill() })() // its error is returned below
	reported := func() {
		if end == Kill {
			_ = kill() // likewise
		}
	}
	err = r.listen(p.Output(), result, reported)
	err = errors.Join(err, kill(), p.Output().Close())
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

var errNoResult = errors.New("the process ended without a result")

// listen reads to the end of the pipe.
func (r *Runner) listen(pipe io.Reader, result any, reported func()) error {
	dec := json.NewDecoder(pipe)
	found := false
	for {
		var m message
		err := dec.Decode(&m)
		switch {
		case errors.Is(err, io.EOF) && found:
			return nil
		case errors.Is(err, io.EOF):
			return errNoResult
		case err != nil:
			return fmt.Errorf("message of the process: %w", err)
		}
		if m.Result == nil {
			r.progress(m)
			continue
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("result of the process: %w", err)
		}
		found = true
		reported()
	}
}

func (r *Runner) progress(m message) {
	if r.Progress != nil {
		r.Progress(m.Phase, m.Done, m.Total)
	}
}

// Func is a task. It decodes its configuration, and reports a result at most
// once. Its context ends when the process is asked to.
type Func func(ctx context.Context, config []byte, r *Reporter) error

// ErrUnknown says that there is no task of a name.
var ErrUnknown = errors.New("no such task")

// Serve runs a task in the child. A message goes to out in one write.
func Serve(ctx context.Context, tasks map[string]Func, name, config string, out io.Writer) error {
	run, ok := tasks[name]
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return run(ctx, []byte(config), &Reporter{out: json.NewEncoder(out)})
}

// progressEvery is the least time between two messages of one phase.
const progressEvery = 50 * time.Millisecond

// Reporter speaks to the parent. It is safe for concurrent use.
type Reporter struct {
	mu    sync.Mutex
	out   *json.Encoder
	phase string
	last  time.Time
}

// Progress says how far a phase is. It may be called often. It is best effort:
// if the parent is gone, so is this process.
func (r *Reporter) Progress(phase string, done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if phase == r.phase && done < total && time.Since(r.last) < progressEvery {
		return
	}
	r.phase, r.last = phase, time.Now()
	_ = r.out.Encode(message{Phase: phase, Done: done, Total: total})
}

// Result reports what came of the task. The parent may kill the process before
// it returns.
func (r *Reporter) Result(result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Encode(message{Result: text})
}
