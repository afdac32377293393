package rekindle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

const smallSegment = 64 << 10

// logBytes is the size of the log's files.
func logBytes(fs *vfs.Mem) (sum int64) {
	for name, content := range fs.Dump() {
		if strings.HasSuffix(name, ".log") {
			sum += int64(len(content))
		}
	}
	return sum
}

// TestLogStaysSmall: whatever rows come and go, the log is brought down to its
// bound, and has all rows then.
func TestLogStaysSmall(t *testing.T) {
	for name, round := range map[string]func(*population){
		"one hot row":     func(p *population) { p.each(1, func(int64) { p.put(7, 100) }); p.repeat(600, func() { p.put(7, 100) }) },
		"all rows":        func(p *population) { p.each(600, func(id int64) { p.put(id, 100) }) },
		"some rows":       func(p *population) { p.repeat(600, func() { p.put(p.rng.Int64N(2000), 100) }) },
		"come and go":     func(p *population) { p.each(600, func(id int64) { p.put(id, 100) }); p.each(590, p.drop) },
		"mixed sizes":     func(p *population) { p.repeat(200, func() { p.put(p.rng.Int64N(300), p.rng.IntN(4000)) }) },
		"everything goes": func(p *population) { p.each(600, func(id int64) { p.put(id, 100) }); p.each(600, p.drop) },
		"few rows survive": func(p *population) {
			p.each(600, func(id int64) { p.put(id+int64(p.round)*1000, 100) })
			p.each(600, p.dropMost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			o := rekindle.Options{SegmentBytes: smallSegment, CheckpointBytes: -1}
			p := &population{t: t, rng: rand.New(rand.NewPCG(1, 2)), rows: map[int64]item{}}
			p.db, p.items = openItems(t, fs, o)
			for p.round = range 12 {
				round(p)
				if p.round%3 == 2 { // most rows are in the log then
					require.NoError(t, p.db.Close(t.Context()))
					p.db, p.items = openItems(t, fs, o)
				}
				require.NoError(t, p.db.Checkpoint(t.Context()))
				require.NoError(t, p.db.Compact(t.Context()))
				// Live bytes are counted in size classes, a little above.
				require.LessOrEqual(t, logBytes(fs), 2*p.live()+6*smallSegment, "round %d, live %d", p.round, p.live())
			}
			p.check()
			require.NoError(t, p.db.Close(t.Context()))
			p.db, p.items = openItems(t, fs, rekindle.Options{})
			p.check()
			require.NoError(t, p.db.Close(t.Context()))
		})
	}
}

// TestCompactEndsBesideWriters: a call does not run after what others log while it
// works.
func TestCompactEndsBesideWriters(t *testing.T) {
	o := rekindle.Options{SegmentBytes: smallSegment, CheckpointBytes: smallSegment}
	fs := vfs.NewMem()
	fs.OnOp(func(_ int, op vfs.Op) error {
		if op.Kind == vfs.OpSync || op.Kind == vfs.OpDatasync {
			time.Sleep(time.Millisecond) // about what a disk takes
		}
		return nil
	})
	db, err := rekindle.Open(t.Context(), "db", o.OnFS(fs))
	require.NoError(t, err)
	w, err := counters.Open(t.Context(), db)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for worker := range int32(8) {
		writers.Go(func() {
			for ctx.Err() == nil {
				if _, err := w.Step(t.Context(), worker); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for start := time.Now(); err == nil && time.Since(start) < time.Second; {
		limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err = db.Compact(limited)
		cancel()
	}
	stop()
	writers.Wait()
	require.NoError(t, err)
	require.NoError(t, w.Check(t.Context(), nil))
	require.NoError(t, db.Close(t.Context()))
}

// TestWritersWaitForTheCompaction: where the log grows faster than it is compacted,
// who writes slows down, but not for a compaction that does not work.
func TestWritersWaitForTheCompaction(t *testing.T) {
	const checkpoint = 2 * smallSegment
	var newest atomic.Int64 // segment
	var broken atomic.Bool
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem, errorfs.Func(func(op vfs.Op) error {
		at, isSegment := segmentPosition(op.Path)
		switch {
		case isSegment && op.Kind == vfs.OpCreate:
			newest.Store(at)
		case !isSegment || op.Kind != vfs.OpOpenRead || at > newest.Load()-8*checkpoint: // needed by checkpoints
		case broken.Load():
			return syscall.EIO
		default:
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}))
	o := rekindle.Options{SegmentBytes: smallSegment, CheckpointBytes: checkpoint, Durability: rekindle.None}
	p := &population{t: t, rng: rand.New(rand.NewPCG(1, 2)), rows: map[int64]item{}}
	p.db, p.items = openItems(t, fs, o)
	turn := int64(0)
	waits := func() bool {
		if turn++; turn%(checkpoint/4000) == 0 { // the checkpoints keep up
			require.NoError(t, p.db.Checkpoint(t.Context()))
		}
		p.put(turn/16, 100) // something is live in every segment
		crowding, start := p.db.Crowding(), time.Now()
		p.put(-1, 4000)
		return crowding > 0 && time.Since(start) >= time.Duration(crowding*float64(rekindle.CrowdedPause))
	}
	for start := time.Now(); !waits(); {
		require.Less(t, time.Since(start), time.Minute)
	}
	broken.Store(true)
	for start := time.Now(); p.db.Crowding() > 0; waits() {
		require.Less(t, time.Since(start), time.Minute)
	}
	require.NoError(t, p.db.Checkpoint(t.Context()))
	require.Zero(t, p.db.Crowding(), "the log is as long as before")
	require.NoError(t, p.db.Close(t.Context()))
	p.db, p.items = openItems(t, mem, rekindle.Options{})
	p.check()
	require.NoError(t, p.db.Close(t.Context()))
}

// segmentPosition is where a log segment begins.
func segmentPosition(name string) (at int64, ok bool) {
	n, _ := fmt.Sscanf(path.Base(name), "00-%x.log", &at)
	return at, n == 1
}

// TestWritersWaitForCheckpoints: where the log grows faster than checkpoints are
// written, who writes slows down.
func TestWritersWaitForCheckpoints(t *testing.T) {
	const checkpoint = smallSegment
	fs := vfs.NewMem()
	release := make(chan struct{})
	fs.OnOp(func(_ int, op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.Contains(op.Path, "/ckpt/") {
			<-release
		}
		return nil
	})
	o := rekindle.Options{SegmentBytes: smallSegment, CheckpointBytes: checkpoint, Durability: rekindle.None}
	p := &population{t: t, rng: rand.New(rand.NewPCG(1, 2)), rows: map[int64]item{}}
	p.db, p.items = openItems(t, fs, o)
	for start := time.Now(); p.db.Stats().LoggedBytes <= 9*checkpoint; p.put(-1, 4000) {
		require.Less(t, time.Since(start), time.Minute)
	}
	start := time.Now()
	p.put(-1, 4000)
	require.GreaterOrEqual(t, time.Since(start), rekindle.CrowdedPause/8)
	close(release)
	require.Eventually(t, func() bool { return p.db.Stats().CheckpointCTS > 0 }, 20*time.Second, time.Millisecond)
	p.check()
	require.NoError(t, p.db.Close(t.Context()))
}

// TestOneFlushServesManySegments: where segments hold a live row each, their rows
// move together.
func TestOneFlushServesManySegments(t *testing.T) {
	fs := vfs.NewMem()
	p := newPopulation(t, fs, rekindle.Options{})
	const segments = 40
	for id := range int64(segments) {
		p.put(1000+id, 100)
		p.repeat(20, func() { p.put(7, 4000) })
	}
	for range 2 { // which both have all of that behind them
		require.NoError(t, p.db.Checkpoint(t.Context()))
		p.put(7, 100)
	}
	var flushes atomic.Int64
	fs.OnOp(func(_ int, op vfs.Op) error {
		if op.Kind == vfs.OpDatasync && strings.HasSuffix(op.Path, ".log") {
			flushes.Add(1)
		}
		return nil
	})
	require.NoError(t, p.db.Compact(t.Context()))
	require.GreaterOrEqual(t, p.db.Stats().CompactedRows, int64(segments/2))
	require.Less(t, flushes.Load(), int64(segments/4))
	p.check()
	require.NoError(t, p.db.Close(t.Context()))
}

// TestFallbackKeepsItsSegments: what the checkpoint before the last one counts on
// is there, whatever the compaction has moved since.
func TestFallbackKeepsItsSegments(t *testing.T) {
	fs := vfs.NewMem()
	p := newPopulation(t, fs, rekindle.Options{})
	for range 6 {
		p.mixed(40)
		require.NoError(t, p.db.Compact(t.Context()))
		damaged := fs.CrashClone(nil, vfs.Strict)
		damageNewest(t, damaged)
		db, items := openItems(t, damaged, rekindle.Options{})
		require.NotEmpty(t, db.RecoveryReport().Fallbacks)
		then := *p
		then.db, then.items = db, items
		then.check()
		require.NoError(t, db.Close(t.Context()))
	}
	require.NotZero(t, p.db.Stats().CompactedRows)
	require.NoError(t, p.db.Close(t.Context()))
}

// damageNewest cuts the array files of the newest checkpoint.
func damageNewest(t *testing.T, fs *vfs.Mem) {
	t.Helper()
	numbers, err := fs.List("/db/ckpt")
	require.NoError(t, err)
	newest := path.Join("/db/ckpt", numbers[len(numbers)-1])
	names, err := fs.List(newest)
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasPrefix(name, "array-") {
			continue
		}
		f, err := fs.Open(path.Join(newest, name))
		require.NoError(t, err)
		require.NoError(t, f.Truncate(100))
		require.NoError(t, f.Close())
	}
}

// population is a table and what should be in it.
type population struct {
	t     *testing.T
	db    *rekindle.DB
	items *rekindle.Table[item]
	rng   *rand.Rand
	rows  map[int64]item
	round int
}

func (p *population) repeat(n int, f func()) {
	for range n {
		f()
	}
}

func (p *population) each(n int64, f func(id int64)) {
	for id := range n {
		f(id)
	}
}

func (p *population) put(id int64, size int) {
	note := string(make([]byte, size))
	row := item{ID: id, Name: fmt.Sprint(id), Group: int32(p.rng.IntN(100)), Note: &note}
	update(p.t, p.db, func(tx *rekindle.Tx) { require.NoError(p.t, p.items.Upsert(tx, &row)) })
	p.rows[id] = row
}

func (p *population) drop(id int64) {
	update(p.t, p.db, func(tx *rekindle.Tx) { require.NoError(p.t, p.items.Delete(tx, &item{ID: id})) })
	delete(p.rows, id)
}

func (p *population) dropMost(id int64) {
	if id += int64(p.round) * 1000; id%20 != 0 {
		p.drop(id)
	}
}

// live is about what the log records of all rows take.
func (p *population) live() (sum int64) {
	for _, row := range p.rows {
		sum += int64(120 + len(*row.Note))
	}
	return sum
}

func (p *population) check() {
	p.t.Helper()
	_, err := p.db.CrossCheck(p.t.Context())
	require.NoError(p.t, err)
	found := allItems(p.t, p.db, p.items)
	require.Len(p.t, found, len(p.rows))
	for _, row := range found {
		require.Equal(p.t, p.rows[row.ID], row)
	}
}

// TestLogShrinksByItself: nobody asks for it, and no commit is needed for the last
// checkpoints that it takes.
func TestLogShrinksByItself(t *testing.T) {
	fs := vfs.NewMem()
	const checkpointBytes = 2 * smallSegment
	o := rekindle.Options{SegmentBytes: smallSegment, CheckpointBytes: checkpointBytes}
	p := &population{t: t, rng: rand.New(rand.NewPCG(1, 2)), rows: map[int64]item{}}
	p.db, p.items = openItems(t, fs, o)
	bound := func() int64 { return 2*p.live() + 3*checkpointBytes + 6*smallSegment }
	for range 10 {
		p.repeat(500, func() { p.put(p.rng.Int64N(400)*p.rng.Int64N(3), 300) })
		require.Eventually(t, func() bool { return logBytes(fs) <= bound() }, 10*time.Second, time.Millisecond)
	}
	require.NotZero(t, p.db.Stats().CompactedRows)
	p.each(1000, func(id int64) {
		if _, there := p.rows[id]; there {
			p.drop(id)
		}
	})
	require.NoError(t, p.db.Checkpoint(t.Context()))
	require.Eventually(t, func() bool { return logBytes(fs) <= 6*smallSegment }, 10*time.Second, time.Millisecond)
	p.check()
	require.NoError(t, p.db.Close(t.Context()))
}
