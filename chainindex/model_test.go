package chainindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// modelKeys are shapes of keys, few enough of each that they meet again.
var modelKeys = map[string]func(r *rand.Rand) string{
	"numbers":   func(r *rand.Rand) string { return fmt.Sprintf("%08d", r.IntN(400)) },
	"tiny":      func(r *rand.Rand) string { return strings.Repeat("\x00", r.IntN(3)) + string(rune('a'+r.IntN(3))) },
	"one":       func(*rand.Rand) string { return "the only key" },
	"long":      func(r *rand.Rand) string { return strings.Repeat("k", 300*r.IntN(12)) + strconv.Itoa(r.IntN(9)) },
	"prefixed":  func(r *rand.Rand) string { return fmt.Sprintf("region/%d/customer/%d", r.IntN(3), r.IntN(200)) },
	"wide open": func(r *rand.Rand) string { return strconv.FormatUint(r.Uint64N(1<<40), 36) },
}

// modelRun is an index beside a model, and what a restart would bring back.
type modelRun struct {
	*rig
	*session
	rng  *rand.Rand
	key  func(*rand.Rand) string
	rows int
	seen map[int]int

	index   *Index
	m       *indextest.Model
	capture index.Capture
	create  func(string) (vfs.File, error)
	line    *indextest.Model // as it was when capture began
	written []index.FileInfo // by capture
	files   []index.FileInfo // of the last checkpoint published
	durable *indextest.Model // what they have
}

func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("CHAIN_SEED"), 10, 64); err == nil {
		seed = s
	}
	for name, key := range modelKeys {
		t.Run(name, func(t *testing.T) {
			t.Logf("CHAIN_SEED=%d", seed)
			run := &modelRun{rig: newRig(t), rng: rand.New(rand.NewPCG(seed, 0)), key: key, rows: 5, m: &indextest.Model{}, seen: map[int]int{}}
			if name == "one" {
				run.rows = 1000
			}
			run.use(run.rig.create())
			for range scaled(8000) {
				run.step()
			}
			run.equals(run.m)
			run.abandon()
			t.Logf("steps by layers: %v", run.seen)
		})
	}
}

// use goes on with an index. Every other one merges only where the cap says so.
func (run *modelRun) use(x *Index) {
	run.index, run.session = x, run.rig.session(x)
	if run.rng.IntN(2) == 0 {
		x.plan = lagging
	}
}

func (run *modelRun) step() {
	switch n := run.rng.IntN(1000); {
	case n < 8:
		run.toggleCapture()
	case n < 9:
		run.restart()
	case n < 30:
		run.walk()
	case n < 100:
		key := run.key(run.rng)
		require.True(run.rig.t, slices.Equal(run.m.Rows(key), run.lookup(key)))
	case n < 520:
		e := run.entry()
		if run.rng.IntN(2) == 0 && run.m.Len() > 0 {
			all := run.m.Behind(index.Range{}, &index.Cursor{})
			e = all[run.rng.IntN(len(all))]
		}
		require.Equal(run.rig.t, run.m.Remove(e), run.remove(e.Key, int(e.Row.Ordinal())))
	case n < 600:
		run.unique()
	default:
		e := run.entry()
		run.m.Insert(e)
		run.insert(e.Key, int(e.Row.Ordinal()))
	}
	require.LessOrEqual(run.rig.t, run.index.Layers(), maxLayers)
	run.seen[run.index.Layers()]++
}

func (run *modelRun) entry() indextest.Entry {
	return indextest.Entry{Key: run.key(run.rng), Row: row(1 + run.rng.IntN(run.rows))}
}

// collect is a checker that takes down what it is asked.
type collect map[uint64]bool

func (c collect) Check(other rowid.ID) error {
	c[other.Ordinal()] = true
	return nil
}

func (run *modelRun) unique() {
	e, asked, want := run.entry(), collect{}, collect{}
	for _, other := range run.m.Rows(e.Key) {
		if other != e.Row {
			want[other.Ordinal()] = true
		}
	}
	require.NoError(run.rig.t, run.tryInsert(e.Key, int(e.Row.Ordinal()), asked))
	require.Equal(run.rig.t, want, asked)
	run.m.Insert(e)
}

// walk scans from somewhere in fills of some size, with a turn now and then.
func (run *modelRun) walk() {
	r := index.Range{Reverse: run.rng.IntN(2) == 0}
	if run.rng.IntN(2) == 0 {
		r.Lo = []byte(run.key(run.rng))
	}
	if run.rng.IntN(2) == 0 {
		r.Hi = []byte(run.key(run.rng))
	}
	var c index.Cursor
	if run.rng.IntN(2) == 0 {
		c.Set([]byte(run.key(run.rng)), row(1+run.rng.IntN(run.rows)))
	}
	size := 1 + run.rng.IntN(80)
	b := index.Batch{First: size, Max: size}
	for range 4 {
		want := run.m.Behind(r, &c)
		more, err := run.fill(r, &c, &b)
		require.NoError(run.rig.t, err)
		require.LessOrEqual(run.rig.t, b.Len(), size)
		require.LessOrEqual(run.rig.t, b.Len(), len(want))
		for i := range b.Len() {
			require.Equal(run.rig.t, want[i], indextest.Entry{Key: string(b.Key(i)), Row: b.Row(i)})
		}
		require.True(run.rig.t, more || b.Len() == len(want))
		if run.rng.IntN(8) == 0 {
			r.Reverse = !r.Reverse
		}
	}
}

// toggleCapture takes a checkpoint one step further: begin, write, publish, or
// abandon at any time.
func (run *modelRun) toggleCapture() {
	switch {
	case run.capture == nil:
		run.capture, run.create = run.begin(run.index)
		run.line, run.written = run.m.Clone(), nil
	case run.rng.IntN(3) == 0:
		run.abandon()
	case run.written == nil:
		var err error
		run.written, err = run.capture.Write(context.Background(), run.create)
		require.NoError(run.rig.t, err)
		require.LessOrEqual(run.rig.t, len(run.written), maxFiles)
	default:
		run.capture.Published()
		run.capture, run.files, run.durable = nil, run.written, run.line
		reopened := run.rig.session(run.rig.open(run.files))
		require.True(run.rig.t, slices.Equal(all(run.durable), reopened.scan(index.Range{}, 64)))
		require.NoError(run.rig.t, verifyAll(reopened.x.(*Index)))
	}
}

func all(m *indextest.Model) []indextest.Entry { return m.Behind(index.Range{}, &index.Cursor{}) }

// restart loses what came after the last checkpoint.
func (run *modelRun) restart() {
	if run.files == nil {
		return
	}
	run.abandon()
	run.use(run.rig.open(run.files))
	run.m = run.durable.Clone()
	run.equals(run.m)
}

func (run *modelRun) abandon() {
	if run.capture != nil {
		run.capture.Abandon()
		run.capture = nil
	}
}
