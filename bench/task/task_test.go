package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asChild makes the test binary a child.
const asChild = "REKINDLE_TEST_TASK"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	if err := Serve(context.Background(), tasks(), os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tasks() map[string]Func {
	wait := func() { time.Sleep(time.Minute) }
	return map[string]Func{
		"echo": func(_ context.Context, config []byte, r *Reporter) error {
			r.Progress("thinking", 1, 2)
			return r.Result(string(config))
		},
		"stay": func(_ context.Context, _ []byte, r *Reporter) error {
			defer wait()
			return r.Result("here")
		},
		"hang": func(_ context.Context, _ []byte, r *Reporter) error {
			r.Progress("hanging", 0, 1)
			wait()
			return nil
		},
		"fail":   func(context.Context, []byte, *Reporter) error { return errors.New("it hurts") },
		"babble": func(context.Context, []byte, *Reporter) error { fmt.Println("babble"); return nil },
	}
}

func runner(t *testing.T) (*Runner, *bytes.Buffer) {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	var stderr bytes.Buffer
	return &Runner{Executable: executable, Env: []string{asChild + "=1"}, Stderr: &stderr}, &stderr
}

func TestRunToTheEnd(t *testing.T) {
	r, _ := runner(t)
	var heard []string
	r.Progress = func(phase string, done, total int64) {
		heard = append(heard, fmt.Sprintf("%s %d/%d", phase, done, total))
	}
	var result string
	require.NoError(t, r.Run(t.Context(), "echo", []int{1, 2}, &result, Await))
	require.Equal(t, "[1,2]", result)
	require.Equal(t, []string{"thinking 1/2"}, heard)
}

func TestKillAtTheResult(t *testing.T) {
	r, _ := runner(t)
	var result string
	start := time.Now()
	require.NoError(t, r.Run(t.Context(), "stay", nil, &result, Kill))
	require.Equal(t, "here", result)
	require.Less(t, time.Since(start), 30*time.Second)
}

func TestContextKills(t *testing.T) {
	r, _ := runner(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.Progress = func(string, int64, int64) { cancel() }
	require.ErrorIs(t, r.Run(ctx, "hang", nil, nil, Await), context.Canceled)
}

func TestFailures(t *testing.T) {
	for _, c := range []struct{ task, want, stderr string }{
		{"fail", errNoResult.Error(), "it hurts"},
		{"nonsense", errNoResult.Error(), `no such task: "nonsense"`},
		{"babble", "message of the process", ""},
	} {
		r, stderr := runner(t)
		err := r.Run(t.Context(), c.task, nil, nil, Await)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), c.task+": "), "%v", err)
		require.Contains(t, stderr.String(), c.stderr)
	}
	r, _ := runner(t)
	var number int
	require.ErrorContains(t, r.Run(t.Context(), "echo", "x", &number, Await), "result of the process")
	require.Error(t, r.Run(t.Context(), "echo", func() {}, nil, Await))
	r.Executable = "/nonexistent"
	require.ErrorIs(t, r.Run(t.Context(), "echo", nil, nil, Await), os.ErrNotExist)
}

func TestProgressIsThrottled(t *testing.T) {
	var out bytes.Buffer
	err := Serve(t.Context(), map[string]Func{"count": func(_ context.Context, _ []byte, r *Reporter) error {
		for i := range int64(10_001) {
			r.Progress("counting", i, 10_000)
		}
		r.Progress("resting", 0, 1)
		return nil
	}}, "count", "", &out)
	require.NoError(t, err)
	lines := strings.Count(out.String(), "\n")
	require.GreaterOrEqual(t, lines, 3, "first, last and the next phase")
	require.Less(t, lines, 100)
	require.ErrorIs(t, Serve(t.Context(), nil, "x", "", &out), ErrUnknown)
}
