//go:build !race

package rekindle_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var recoveredRows = flag.Int64("recovery.rows", 60_000, "rows of TestRecoveryMemory")

// Environment of the processes that tests of this file start.
const (
	childDir      = "REKINDLE_TEST_DIR"
	childStrategy = "REKINDLE_TEST_STRATEGY"
)

// runChild runs one test in a process of its own and returns its output. The
// command line is a shell's, in which "$0" is the program.
func runChild(t *testing.T, command, test string, env ...string) string {
	t.Helper()
	child := exec.Command("sh", "-c", command+` -test.v -test.run "$1" -recovery.rows "$2"`,
		os.Args[0], "^"+test+"$", strconv.FormatInt(*recoveredRows, 10))
	child.Env = append(os.Environ(), env...)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+test)
	return string(out)
}

// openChild opens the database of a test's process; nil if this is none.
func openChild(t *testing.T) (*rekindle.DB, *rekindle.Table[item]) {
	t.Helper()
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs in a process of another test")
	}
	o := rekindle.Options{IndexStrategy: os.Getenv(childStrategy), Durability: rekindle.None}
	db, err := rekindle.Open(t.Context(), dir, &o)
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	return db, items
}

// TestLimitedAddressSpace opens, loads and reopens a database in processes that
// may have 2 GB of addresses, and little memory for the Go heap: nothing is
// reserved ahead.
func TestLimitedAddressSpace(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []string{"TestChildLoads", "TestChildRecovers"} {
		runChild(t, `ulimit -v 2000000 && exec "$0"`, test, childDir+"="+dir, "GOMEMLIMIT=32MiB")
	}
}

// TestRecoveryMemory: a process that was killed with half of its rows behind the
// last checkpoint can start again, and read all of them, in the memory that it
// had. For more: -recovery.rows 1000000.
func TestRecoveryMemory(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			env := []string{childDir + "=" + t.TempDir(), childStrategy + "=" + strategy}
			running := reported(t, runChild(t, `exec "$0"`, "TestChildLoads", env...))
			starting := reported(t, runChild(t, `exec "$0"`, "TestChildRecovers", env...))
			t.Logf("running %d KiB, starting %d KiB", running, starting)
			const program = 12 << 10 // in KiB: it matters in small databases only
			require.LessOrEqual(t, starting, running*11/10+program)
		})
	}
}

// TestChildLoads fills a database and leaves it as a killed process would.
func TestChildLoads(t *testing.T) {
	db, items := openChild(t)
	forEach(t, db, *recoveredRows/2, items.Insert)
	require.NoError(t, db.Checkpoint(t.Context()))
	forEach(t, db, *recoveredRows, func(tx *rekindle.Tx, row *item) error {
		if row.ID < *recoveredRows/2 {
			return nil
		}
		return items.Insert(tx, row)
	})
	require.Eventually(t, func() bool { s := db.Stats(); return s.DurableCTS == s.VisibleCTS }, 10*time.Second, time.Millisecond)
	runtime.GC()
	report(t, "VmRSS")
}

// TestChildRecovers opens that database and brings all rows into memory.
func TestChildRecovers(t *testing.T) {
	db, items := openChild(t)
	require.NotZero(t, db.RecoveryReport().RecordsReplayed)
	for id := range *recoveredRows {
		get(t, db, items, id)
	}
	report(t, "VmHWM")
}

const reportMark = "memory in KiB: "

// report prints a figure of /proc/self/status.
func report(t *testing.T, name string) {
	eachLine(t, "/proc/self/status", func(line string) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, name+": %d kB", &kilobytes); n == 1 {
			t.Log(reportMark, kilobytes)
		}
	})
}

func reported(t *testing.T, output string) (kilobytes int64) {
	_, figure, found := strings.Cut(output, reportMark)
	require.True(t, found, "%s", output)
	_, err := fmt.Sscan(figure, &kilobytes)
	require.NoError(t, err)
	return kilobytes
}
