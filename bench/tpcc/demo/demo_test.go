package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

// childMode makes the test binary a child; its value says which kind.
const childMode = "REKINDLE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := runMode(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runMode(mode string) error {
	var c ChildConfig
	if err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &c); err != nil {
		return err
	}
	switch mode {
	case "honest":
		return RunChild(context.Background(), c, os.Stdout)
	case "liar": // acknowledges an order that it never places
		_, err := os.Stdout.Write(appendResult(nil, wireResults[0]))
		time.Sleep(time.Minute)
		return err
	case "silent":
		time.Sleep(time.Minute)
		return nil
	case "garbage":
		_, err := os.Stdout.Write(bytes.Repeat([]byte{0xff}, 2*recordSize))
		return err
	}
	return errors.New("child failed: " + mode)
}

func testConfig(t *testing.T, mode string) Config {
	t.Setenv(childMode, mode)
	executable, err := os.Executable()
	require.NoError(t, err)
	return Config{
		Dir:             t.TempDir(),
		CheckpointBytes: 1 << 20,
		Scale:           tpcc.Tiny(1),
		Rounds:          3,
		Duration:        400 * time.Millisecond,
		Seed:            11,
		Terminals:       4,
		Executable:      executable,
		Stderr:          os.Stderr,
	}
}

func TestRoundsFindEverythingAcknowledged(t *testing.T) {
	c := testConfig(t, "honest")
	phases := map[string]bool{}
	c.Progress = func(phase string, done, total int64) { phases[phase] = true }
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.True(t, report.OK())
	require.Len(t, report.Rounds, c.Rounds)
	require.Equal(t, map[string]bool{"loading row": true, "running round": true, "checking round": true}, phases)
	rows := int64(0)
	for i, r := range report.Rounds {
		require.Equal(t, i+1, r.Number)
		require.Positive(t, r.Acks.Transactions)
		require.Positive(t, r.Acks.NewOrders)
		require.GreaterOrEqual(t, r.Committed, r.Acks.NewOrders)
		require.LessOrEqual(t, r.Committed, r.Acks.NewOrders+int64(c.Terminals))
		require.Greater(t, r.Rows, rows)
		rows = r.Rows
		require.GreaterOrEqual(t, r.Ran, c.Duration/4)
		require.GreaterOrEqual(t, r.FirstRead, r.Open)
		require.Positive(t, r.Recovery.RecordsReplayed)
		require.Positive(t, r.Stats.LogBytes)
	}
}

func TestALostOrderIsAViolation(t *testing.T) {
	report, err := Run(t.Context(), testConfig(t, "liar"))
	require.ErrorIs(t, err, ErrViolation)
	require.False(t, report.OK())
	require.Len(t, report.Rounds, 1, "it stops there")
	require.EqualValues(t, 1, report.Rounds[0].Violations())
	require.Contains(t, report.violationText(), "no such order")
}

func TestChildThatFails(t *testing.T) {
	c := testConfig(t, "broken")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, errEnded)
	require.ErrorContains(t, err, "round 1")
	require.Contains(t, stderr.String(), "child failed: broken")
}

func TestChildThatWritesGarbage(t *testing.T) {
	_, err := Run(t.Context(), testConfig(t, "garbage"))
	require.ErrorContains(t, err, "not a record")
}

func TestExecutableThatDoesNotExist(t *testing.T) {
	c := testConfig(t, "honest")
	c.Executable = "/nonexistent/rekindle"
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCancelKillsTheChild(t *testing.T) {
	c := testConfig(t, "silent")
	p, err := startChild(c.Executable, nil, c.child(1), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = p.runFor(ctx, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	acks, err := p.kill()
	require.NoError(t, err)
	require.Zero(t, acks.Transactions)
}

func TestSilentChildTimesOut(t *testing.T) {
	p := &process{first: make(chan struct{}), done: make(chan struct{})}
	require.ErrorIs(t, p.await(t.Context(), p.first, time.Millisecond), errTimeout)
	close(p.done)
	require.ErrorIs(t, p.await(t.Context(), p.first, time.Minute), errEnded)
}

func TestConfigRejectsWhatCannotRun(t *testing.T) {
	c := Config{Rounds: 0, Duration: -1, Terminals: 0, Scale: tpcc.Scale{}}
	err := c.Validate()
	for _, want := range []string{"rounds", "duration", "terminals", "warehouses"} {
		require.ErrorContains(t, err, want)
	}
	_, runErr := Run(t.Context(), c)
	require.Equal(t, err.Error(), runErr.Error())
}

func TestLifeIsRandomWithinItsBounds(t *testing.T) {
	c := Config{Duration: time.Second, Seed: 3}
	lives := map[time.Duration]bool{}
	for round := range 50 {
		d := c.life(round)
		require.GreaterOrEqual(t, d, 250*time.Millisecond)
		require.LessOrEqual(t, d, time.Second)
		require.Equal(t, d, c.life(round))
		lives[d] = true
	}
	require.Greater(t, len(lives), 45)
}
