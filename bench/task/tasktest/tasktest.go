// Package tasktest makes a test binary the child that its tests start.
package tasktest

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/bench/task"
)

// asChild is set in the environment of a child.
const asChild = "REKINDLE_TEST_TASK"

// Main is what TestMain does: it runs the tests, or a task if it is a Runner that
// has started the binary.
func Main(m *testing.M, tasks map[string]task.Func) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	if err := task.Serve(context.Background(), tasks, os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Runner runs tasks in processes of this test binary.
func Runner(t testing.TB, stderr io.Writer) task.Runner {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	return task.Runner{Executable: executable, Env: []string{asChild + "=1"}, Stderr: stderr}
}
