package overhead

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/task/tasktest"
)

func TestMain(m *testing.M) { tasktest.Main(m, Tasks()) }

// tiny is a configuration that takes seconds.
func tiny(t *testing.T) Config {
	t.Helper()
	return Config{
		Strategies: rekindle.IndexStrategies(),
		Rows:       []int64{2000},
		Load: Load{
			Indexes: 2,
			Writers: 4,
			Reads:   2,
			Durable: true,
			Slice:   300 * time.Millisecond,
			Every:   100 * time.Millisecond,
		},
		Pairs:  2,
		Dir:    t.TempDir(),
		Runner: tasktest.Runner(t, os.Stderr),
		Each:   func(*Case) error { return nil },
	}
}

func run(t *testing.T, c Config) (cases []*Case) {
	t.Helper()
	c.Each = func(found *Case) error {
		cases = append(cases, found)
		return nil
	}
	require.NoError(t, Run(t.Context(), c))
	remains, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, remains)
	return cases
}

func TestRun(t *testing.T) {
	c := tiny(t)
	cases := run(t, c)
	require.Len(t, cases, len(c.Strategies))
	var lines []bench.Measurement
	for _, found := range cases {
		requirePlausible(t, &found.Result)
		lines = append(lines, found.Measurements()...)
	}
	var out bytes.Buffer
	require.NoError(t, bench.WriteJSON(&out, lines))
	back, err := bench.ReadMeasurements(&out)
	require.NoError(t, err)
	require.Equal(t, lines, back)
	require.NoError(t, WriteTables(&out, lines))
	require.Contains(t, out.String(), "incremental")
}

func requirePlausible(t *testing.T, r *Result) {
	t.Helper()
	require.Len(t, r.Slices, 4)
	for i, on := range []bool{false, true, true, false} {
		s := &r.Slices[i]
		require.Equal(t, on, s.On)
		require.Equal(t, on, len(s.Checkpoints) > 0)
		require.Len(t, s.Windows, 3)
		var sum int64
		for _, n := range s.Windows {
			sum += n
		}
		require.Equal(t, sum, s.All.Count)
		require.Positive(t, s.All.Count)
		require.Positive(t, s.All.P50)
		require.GreaterOrEqual(t, s.All.P999, s.All.P99)
		require.Positive(t, s.Index)
		require.LessOrEqual(t, s.Running.Time, s.All.Time)
	}
	require.Positive(t, r.Full.Bytes)
	require.Len(t, r.Incremental, 2)
	for _, c := range r.Incremental {
		require.Positive(t, c.Bytes)
		require.Positive(t, c.Took)
	}
}

func TestRunRelaxedWithoutPause(t *testing.T) {
	c := tiny(t)
	c.Strategies, c.Pairs = c.Strategies[:1], 1
	c.Load.Durable, c.Load.Every, c.Load.Reads = false, 0, 0
	r := &run(t, c)[0].Result
	require.Len(t, r.Slices, 2)
	checkpoints := r.Slices[1].Checkpoints
	require.NotEmpty(t, checkpoints)
	if checkpoints[0].End() < c.Load.Slice { // else there was no time for another
		require.Greater(t, len(checkpoints), 1)
	}
}

// example is made up: two pairs, off on, on off.
func example() *Case {
	slice := func(on bool, begin, count, p99 int) Slice {
		s := Slice{
			On: on, Begin: time.Duration(begin) * time.Second, Index: 1 << 20, Windows: []int64{10, 20},
			All: Commits{Count: int64(count), Time: time.Second, P50: time.Millisecond, P99: time.Duration(p99) * time.Millisecond, P999: time.Second},
		}
		if on {
			s.Running = Commits{Count: 5, Time: 100 * time.Millisecond, P99: 30 * time.Millisecond}
			s.Checkpoints = []Checkpoint{
				{Begin: 150 * time.Millisecond, Took: 200 * time.Millisecond, Bytes: 4 << 20, Index: 1 << 20},
				{Begin: 900 * time.Millisecond, Took: 200 * time.Millisecond, Bytes: 8 << 20}, // beyond the slice
			}
		}
		return s
	}
	return &Case{Strategy: "rebuild", Rows: 2000, Result: Result{
		Full:        Checkpoint{Took: time.Second, Bytes: 100 << 20, Index: 60 << 20},
		Incremental: []Checkpoint{{Bytes: 1 << 20}, {Bytes: 3 << 20}},
		Slices:      []Slice{slice(false, 0, 100, 10), slice(true, 2, 90, 20), slice(true, 4, 80, 40), slice(false, 6, 200, 10)},
	}}
}

func TestMeasurementsOfACase(t *testing.T) {
	byName := map[string]bench.Measurement{}
	for _, m := range example().Measurements() {
		require.Equal(t, "overhead", m.Bench)
		require.Equal(t, "rebuild", m.Strategy)
		require.EqualValues(t, 2000, m.Rows)
		require.NotEmpty(t, m.Unit)
		byName[fmt.Sprintf("%s %s@%g", m.Checkpoints, m.Name, m.At)] = m
	}
	for key, value := range map[string]float64{
		"off tx_s@0": 150, "on tx_s@0": 85, "running tx_s@0": 50,
		"off commit_p50_us@0": 1000, "on commit_p99_us@0": 30_000, "on commit_p999_us@0": 1e6,
		"on tx_loss_pct@0": (10 + 60) / 2., "on commit_p99_ratio@0": 3, "running tx_loss_pct@0": (50 + 75) / 2.,
		"off index_mb@0": 1, "on index_mb@0": 1,
		"full ckpt_mb@0": 100, "full ckpt_index_mb@0": 60, "full ckpt_ms@0": 1000,
		"incremental ckpt_mb@0": 2, "on ckpt_mb@0": 4, "on ckpt_ms@0": 200,
		"off timeline_tx_s@0.1": 100, "on timeline_tx_s@2.2": 200, "on timeline_ckpt@2.1": 0, "on timeline_ckpt@2.2": 0.5,
	} {
		require.Contains(t, byName, key)
		require.InDelta(t, value, byName[key].Value, 1e-9, key)
	}
	require.NotContains(t, byName, "off peak_rss_mb@0", "it is not known")
}

func TestCheckpointsThatOutlastTheirSlices(t *testing.T) {
	c := example()
	for i := range c.Result.Slices {
		s := &c.Result.Slices[i]
		if s.On {
			s.Checkpoints, s.Running = s.Checkpoints[1:], Commits{}
		}
	}
	names := map[string]float64{}
	for _, m := range c.Measurements() {
		names[m.Checkpoints+" "+m.Name] = m.Value
	}
	require.InDelta(t, 8, names["on ckpt_mb"], 0)
	require.NotContains(t, names, "running tx_s")
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"indexes":     func(c *Config) { c.Load.Indexes = 0 },
		"writers":     func(c *Config) { c.Load.Writers = 0 },
		"reads":       func(c *Config) { c.Load.Reads = -1 },
		"runs":        func(c *Config) { c.Pairs = 0 },
		"of a slice":  func(c *Config) { c.Load.Slice, c.Load.Every = Window-1, 0 },
		"checkpoints": func(c *Config) { c.Load.Every = c.Load.Slice * 2 },
		"rows":        func(c *Config) { c.Rows = []int64{4*minShare - 1} },
	} {
		c := tiny(t)
		require.NoError(t, c.Validate())
		spoil(&c)
		require.ErrorContains(t, Run(t.Context(), c), name)
	}
}

func TestRunCleansUpAfterAFailure(t *testing.T) {
	c := tiny(t)
	c.Strategies = []string{"nonsense"}
	var stderr bytes.Buffer
	c.Runner.Stderr = &stderr
	require.ErrorContains(t, Run(t.Context(), c), measureTask)
	require.Contains(t, stderr.String(), "nonsense")
	remains, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, remains)

	there := filepath.Join(c.Dir, "nonsense-2000")
	require.NoError(t, os.Mkdir(there, 0o700))
	require.ErrorIs(t, Run(t.Context(), c), os.ErrExist)
	require.DirExists(t, there)
}
