package restart

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
	"github.com/rekindledb/rekindle/bench/usage"
)

func TestMain(m *testing.M) { tasktest.Main(m, Tasks()) }

// tiny is a configuration that takes seconds.
func tiny(t *testing.T) Config {
	t.Helper()
	return Config{
		Strategies:  rekindle.IndexStrategies(),
		Rows:        []int64{2000},
		Tails:       []int64{300},
		Colds:       []bool{false},
		Stops:       []Stop{Kill, Close},
		Indexes:     2,
		Checkpoints: 3,
		Inserts:     20,
		Writers:     8,
		Runs:        2,
		Reading:     300 * time.Millisecond,
		Dir:         t.TempDir(),
		Drop:        DropFiles,
		Runner:      tasktest.Runner(t, os.Stderr),
		Each:        func(*Case) error { return nil },
	}
}

func TestRun(t *testing.T) {
	c := tiny(t)
	cases := run(t, c)
	require.Len(t, cases, 2*len(c.Strategies))
	remains, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, remains)

	var lines []bench.Measurement
	for _, found := range cases {
		lines = append(lines, found.Measurements()...)
	}
	var out bytes.Buffer
	require.NoError(t, bench.WriteJSON(&out, lines))
	back, err := bench.ReadMeasurements(&out)
	require.NoError(t, err)
	require.Equal(t, lines, back)
	require.NoError(t, WriteTables(&out, lines))
	require.Contains(t, out.String(), "phase_replay_ms")
}

func TestRunColdAndWithoutTail(t *testing.T) {
	c := tiny(t)
	c.Strategies = c.Strategies[:1]
	c.Tails, c.Colds, c.Runs = []int64{0, 300}, []bool{false, true}, 1
	require.Len(t, run(t, c), 8)
}

func run(t *testing.T, c Config) (cases []*Case) {
	t.Helper()
	c.Each = func(found *Case) error {
		requirePlausible(t, found)
		require.Len(t, found.Samples, c.Runs)
		cases = append(cases, found)
		return nil
	}
	require.NoError(t, Run(t.Context(), c))
	return cases
}

func requirePlausible(t *testing.T, c *Case) {
	t.Helper()
	for i := range c.Samples {
		s := &c.Samples[i]
		require.Positive(t, s.Open)
		require.Greater(t, s.FirstRead, s.Open)
		require.Greater(t, s.Reads10k, s.FirstRead)
		require.Positive(t, s.Steady())
		require.Positive(t, s.Index)
		require.Empty(t, s.Recovery.Fallbacks)
		require.Equal(t, c.Samples[0].Recovery.RecordsReplayed, s.Recovery.RecordsReplayed, "all runs find the same")
		replayed := s.Recovery.RecordsReplayed
		if c.Stop == Close || c.Tail == 0 {
			require.Zero(t, replayed, "%+v", c)
			continue
		}
		require.GreaterOrEqual(t, replayed, c.Tail)
		require.Less(t, replayed, c.Tail+20_000)
	}
}

// promised are the names that users rely on.
func promised() []string {
	return []string{"open_ms", "first_read_ms", "reads_10k_ms", "steady_s", "peak_rss_mb", "mapped_mb", "read_mb", "replayed"}
}

func TestMeasurementsOfACase(t *testing.T) {
	c := &Case{Strategy: "rebuild", Rows: 2000, Tail: 300, Cold: true, Stop: Kill}
	for i := range 3 {
		c.Samples = append(c.Samples, sample(time.Duration(i+1)))
	}
	byName := map[string]bench.Measurement{}
	for _, m := range c.Measurements() {
		require.Equal(t, "recovery", m.Bench)
		require.Equal(t, "rebuild", m.Strategy)
		require.EqualValues(t, 2000, m.Rows)
		require.EqualValues(t, 300, m.Tail)
		require.True(t, m.Cold)
		require.Equal(t, "kill", m.Stop)
		require.NotEmpty(t, m.Unit)
		byName[fmt.Sprintf("%s@%g", m.Name, m.At)] = m
	}
	for _, name := range promised() {
		require.Equal(t, 3, byName[name+"@0"].Runs, name)
	}
	for key, value := range map[string]float64{
		"open_ms@0": 200, "first_read_ms@0": 202, "reads_10k_ms@0": 220, "steady_s@0": 0.3, "peak_rss_mb@0": 2,
		"replayed@0": 20, "phase_index_rows_ms@0": 60, "phase_other_ms@0": 140,
		"reads_s@0.1": 0, "reads_s@0.3": 1000, "read_p50_us@0.3": 7,
	} {
		require.InDelta(t, value, byName[key].Value, 1e-9, key)
	}
	require.NotContains(t, byName, "read_p50_us@0.1", "there were no reads")
	require.NotContains(t, byName, "reads_s@0.4", "not in all samples")
}

// sample is a made-up one.
func sample(n time.Duration) Sample {
	reads := Reads{Count: 100, Median: 7 * time.Microsecond}
	s := Sample{
		Open: n * 100 * time.Millisecond, FirstRead: n * 101 * time.Millisecond, Reads10k: n * 110 * time.Millisecond,
		Windows: []Reads{{}, {Count: 1, Median: time.Millisecond}, reads},
		AtReads: usage.Usage{Known: true, Peak: 1 << 20}, AtEnd: usage.Usage{Known: true, Peak: 2 << 20},
		Recovery: rekindle.RecoveryReport{
			RecordsReplayed: int64(n) * 10,
			Phases:          []rekindle.Phase{{Name: "index/rows", Duration: n * 10 * time.Millisecond}, {Name: "index/rows", Duration: n * 20 * time.Millisecond}},
			Total:           n * 30 * time.Millisecond,
		},
	}
	if n == 2 {
		s.Windows = append(s.Windows, reads)
	}
	return s
}

func TestSteady(t *testing.T) {
	windows := func(micros ...int) Sample {
		var s Sample
		for _, m := range micros {
			s.Windows = append(s.Windows, Reads{Count: int64(min(m, 1)), Median: time.Duration(m) * time.Microsecond})
		}
		return s
	}
	for _, c := range []struct {
		s    Sample
		want time.Duration
	}{
		{windows(), 0},
		{windows(0, 0), 0},
		{windows(10), Window},
		{windows(0, 100, 12, 50, 10, 10, 10, 10, 10, 10, 10, 10, 10), 3 * Window},
		{windows(0, 100, 13, 12, 10, 10, 10, 10, 10, 10, 10, 10, 10), 4 * Window},
	} {
		require.Equal(t, c.want, c.s.Steady(), "%+v", c.s)
	}
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"indexes":     func(c *Config) { c.Indexes = 5 },
		"checkpoints": func(c *Config) { c.Checkpoints = 0 },
		"inserts":     func(c *Config) { c.Inserts = 101 },
		"writers":     func(c *Config) { c.Writers = 0 },
		"runs":        func(c *Config) { c.Runs = 0 },
		"to read for": func(c *Config) { c.Reading = Window - 1 },
		"rows":        func(c *Config) { c.Rows = []int64{10, 0} },
		"tail":        func(c *Config) { c.Tails = []int64{-1} },
		`"crash"`:     func(c *Config) { c.Stops = []Stop{"crash"} },
	} {
		c := tiny(t)
		require.NoError(t, c.Validate())
		spoil(&c)
		require.ErrorContains(t, Run(t.Context(), c), name)
	}
}

func TestRunLeavesOthersFilesAlone(t *testing.T) {
	c := tiny(t)
	there := filepath.Join(c.Dir, c.Strategies[0]+"-2000")
	require.NoError(t, os.Mkdir(there, 0o700))
	require.ErrorIs(t, Run(t.Context(), c), os.ErrExist)
	require.DirExists(t, there)
}

func TestRunCleansUpAfterAFailure(t *testing.T) {
	c := tiny(t)
	c.Strategies = []string{"nonsense"}
	var stderr bytes.Buffer
	c.Runner.Stderr = &stderr
	require.ErrorContains(t, Run(t.Context(), c), "recovery-load")
	require.Contains(t, stderr.String(), "nonsense")
	remains, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, remains)
}
