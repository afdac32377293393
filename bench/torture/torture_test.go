package torture

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var (
	rounds = flag.Int("torture.rounds", 16, "rounds of TestTorture")
	seed   = flag.Uint64("torture.seed", 0, "seed of TestTorture, 0 for a random one")
)

// childMode makes the test binary a child; its value says which kind.
const childMode = "REKINDLE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		name, config := os.Args[len(os.Args)-2], os.Args[len(os.Args)-1]
		if err := serve(mode, name, config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve is Serve, but lives are those of a broken engine in some modes.
func serve(mode, name, config string) error {
	var out io.Writer = os.Stdout
	if name == lifeTask {
		switch mode {
		case "loses":
			out = &acks{out, func(a Ack) []Ack { return []Ack{a, neverRun(a)} }}
		case "invents":
			out = &acks{out, func(Ack) []Ack { return nil }}
		case "mute":
			time.Sleep(time.Minute)
		case "ends":
			return errors.New("no more")
		case "babbles":
			_, err := out.Write([]byte("what?\n"))
			time.Sleep(time.Minute)
			return err
		}
	}
	return Serve(context.Background(), name, config, out)
}

// acks replaces what a child acknowledges.
type acks struct {
	out     io.Writer
	replace func(Ack) []Ack
}

func (w *acks) Write(line []byte) (int, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return 0, err
	}
	if m.Ack == nil {
		return w.out.Write(line)
	}
	for _, a := range w.replace(*m.Ack) {
		text, err := json.Marshal(message{Ack: &a})
		if err != nil {
			return 0, err
		}
		if _, err := w.out.Write(append(text, '\n')); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}

func neverRun(a Ack) Ack {
	if a.Number > 0 {
		a.Number += 1000
	}
	for i := range a.Receipts {
		a.Receipts[i].ID += 1_000_000
	}
	return a
}

func testConfig(t *testing.T, mode string) Config {
	t.Setenv(childMode, mode)
	executable, err := os.Executable()
	require.NoError(t, err)
	return Config{
		Dir:        t.TempDir(),
		Seed:       1,
		Rounds:     1,
		Workloads:  Workloads(),
		Strategies: rekindle.IndexStrategies(),
		Executable: executable,
		Stderr:     os.Stderr,
	}
}

func TestTorture(t *testing.T) {
	c := testConfig(t, "honest")
	if c.Seed = *seed; c.Seed == 0 {
		c.Seed = uint64(rand.Uint32())
	}
	c.Rounds = *rounds
	c.PerDatabase = 2 // so that each workload meets each strategy
	t.Logf("seed %d", c.Seed)
	report, err := Run(t.Context(), c)
	var counts strings.Builder
	require.NoError(t, report.Write(&counts))
	t.Log("\n" + counts.String())
	require.NoError(t, err)
	require.Equal(t, *rounds, report.Rounds)
	require.Equal(t, report.Acknowledged, report.Confirmed+report.Forgone)
	require.Zero(t, report.Lost+report.Extra)
}

// TestABrokenEngineIsCaught: what is wrong with the engine is found, counted and
// said.
func TestABrokenEngineIsCaught(t *testing.T) {
	for _, workload := range Workloads() {
		for mode, want := range map[string]string{
			"loses":   "acknowledged transactions are there",
			"invents": "no transaction from nowhere",
		} {
			t.Run(workload+" "+mode, func(t *testing.T) {
				c := testConfig(t, mode)
				sync := rekindle.Sync
				c.Durability, c.Workloads, c.Rounds = &sync, []string{workload}, 5
				report, err := Run(t.Context(), c)
				require.ErrorIs(t, err, ErrViolation)
				require.ErrorContains(t, err, want)
				require.Equal(t, mode == "loses", report.Lost > 0)
				require.Equal(t, mode == "invents", report.Extra > 0)
				require.DirExists(t, filepath.Join(c.Dir, "0"), "it is kept")
				require.FileExists(t, filepath.Join(c.Dir, ledgerFile))
			})
		}
	}
}

func TestAChildThatFails(t *testing.T) {
	for mode, want := range map[string]error{"mute": errHung, "ends": errEnded, "babbles": errBabble} {
		t.Run(mode, func(t *testing.T) {
			c := testConfig(t, mode)
			if want == errHung {
				c.patience, c.grace = 300*time.Millisecond, time.Millisecond
			}
			_, err := Run(t.Context(), c)
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, "round 1")
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	c := testConfig(t, "mute")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestThePlanFollowsFromTheSeed(t *testing.T) {
	c := Config{Seed: 5, PerDatabase: 10, Workloads: Workloads(), Strategies: []string{"a", "b"}}
	aims, kinds := map[Phase]bool{}, map[string]bool{}
	for n := 1; n <= 100; n++ {
		d := c.database(n, "d")
		require.Equal(t, d, c.database(n, "d"))
		kinds[d.Workload+" "+d.Strategy] = true
		r := c.round(n, d)
		require.Equal(t, r, c.round(n, d))
		require.Len(t, r.lives, len(r.early))
		aims[r.last.phase] = true
		require.Equal(t, r.last.phase == Converting, r.life.Convert != "")
		require.False(t, r.last.phase == Converting && n%10 == 1, "there is no database yet")
	}
	require.Len(t, kinds, 4)
	require.Len(t, aims, 6)
	other := c
	other.Seed++
	require.NotEqual(t, c.round(1, Database{}), other.round(1, Database{}))
}

func TestConfigRejectsWhatCannotRun(t *testing.T) {
	c := Config{Rounds: -1, Time: -1, Streams: -1, Workloads: []string{"sleep"}}
	for _, want := range []string{"rounds", "time", "streams", "strategy", "sleep", "bounded"} {
		require.ErrorContains(t, c.Validate(), want)
	}
	require.ErrorContains(t, (&Config{Streams: 64}).Validate(), "streams")
	_, err := Run(t.Context(), c)
	require.EqualError(t, err, c.Validate().Error())
}

// TestLooseTransactions: what nobody waited for is promised once somebody did, or
// a check has found it.
func TestLooseTransactions(t *testing.T) {
	ack := func(number int64) Ack { return Ack{Client: 1, Number: number} }
	var l Ledger
	l.begin(false)
	l.ack(ack(1))
	l.ack(ack(2))
	l.settle(settleBegin)
	l.ack(ack(3))
	l.settle(settleEnd)
	require.EqualValues(t, 2, l.Durable.Numbers[1])
	l.begin(false) // 3 may be lost, whatever this life waits for
	l.ack(ack(3))
	l.settleAll()
	require.EqualValues(t, 3, l.Durable.Numbers[1])
	l.ack(ack(4))
	l.begin(false)
	l.settleAll()
	require.EqualValues(t, 3, l.Durable.Numbers[1])
	require.EqualValues(t, 4, l.all().Numbers[1])

	v := Verdict{Numbers: map[int32]int64{1: 3}}
	v.compareNumbers(&l)
	require.NoError(t, v.violations())
	require.EqualValues(t, 1, v.Forgone)
	v = Verdict{Numbers: map[int32]int64{1: 4 + l.Lives}}
	v.compareNumbers(&l)
	require.NoError(t, v.violations())
	v = Verdict{Numbers: map[int32]int64{1: 5 + l.Lives}}
	v.compareNumbers(&l)
	require.Error(t, v.violations())
	v = Verdict{Numbers: map[int32]int64{1: 2}}
	v.compareNumbers(&l)
	require.Error(t, v.violations())
	require.EqualValues(t, 1, v.Lost)

	l.checked(&Verdict{Numbers: map[int32]int64{1: 4}})
	require.EqualValues(t, 4, l.Durable.Numbers[1])
	require.Zero(t, l.Lives)
}
