package rekindle_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var (
	powerCutStride = flag.Int("powercut.stride", 29, "cut the power before every n-th operation; 1 takes many minutes")
	powerCutDeep   = flag.Int("powercut.deep", 100, "cut the power again while recovering from every n-th cut")
)

// powerCut is a disk as it was left before some operation, and what had been
// acknowledged by then.
type powerCut struct {
	op    int
	mode  vfs.CrashMode
	disk  *vfs.Mem
	acked map[int32]int64
}

// recorder takes powerCuts before every stride-th operation and looks at them
// while the life goes on.
type recorder struct {
	fs     *vfs.Mem
	rng    *rand.Rand
	stride int
	mu     sync.Mutex
	acked  map[int32]int64
	taken  int
	ended  bool
	cuts   chan powerCut
	done   chan error
}

// record has check look at each cut, one at a time.
func record(fs *vfs.Mem, stride int, acked map[int32]int64, check func(number int, cut powerCut) error) *recorder {
	r := &recorder{
		fs: fs, rng: rand.New(rand.NewPCG(7, 7)), stride: stride, acked: maps.Clone(acked),
		cuts: make(chan powerCut, 8), done: make(chan error, 1),
	}
	go r.look(check)
	fs.OnOp(func(n int, _ vfs.Op) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n%r.stride == 0 && !r.ended {
			for _, mode := range cutModes(n / r.stride) {
				r.cuts <- powerCut{n, mode, fs.CrashClone(r.rng, mode), maps.Clone(r.acked)}
				r.taken++
			}
		}
		return nil
	})
	return r
}

// cutModes is what is made of the n-th place: any of what can be left, all that
// is certain, and one after the other what is left in special orders.
func cutModes(n int) []vfs.CrashMode {
	special := []vfs.CrashMode{vfs.Keep, vfs.NamesFirst, vfs.DataFirst, vfs.DeletesFirst, vfs.LastFirst, vfs.Kill}
	return []vfs.CrashMode{vfs.Random, vfs.Random, vfs.Strict, special[n%len(special)]}
}

func (r *recorder) look(check func(int, powerCut) error) {
	var errs []error
	number := 0
	for cut := range r.cuts {
		if len(errs) < 3 { // enough
			if err := check(number, cut); err != nil {
				errs = append(errs, fmt.Errorf("operation %d, %v: %w", cut.op, cut.mode, err))
			}
		}
		number++
	}
	r.done <- errors.Join(errs...)
}

func (r *recorder) ack(worker int32, seq int64) {
	r.mu.Lock()
	r.acked[worker] = seq
	r.mu.Unlock()
}

// stop ends the recording and returns what is wrong with the cuts.
func (r *recorder) stop() error {
	r.fs.OnOp(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	close(r.cuts)
	return <-r.done
}

// openWorkload opens a database with small segments and its tables.
func openWorkload(ctx context.Context, fs vfs.FS, o rekindle.Options) (*rekindle.DB, *counters.Workload, error) {
	o.SegmentBytes, o.CheckpointBytes = 64<<10, -1
	db, err := rekindle.Open(ctx, "/db", o.OnFS(fs))
	if err != nil {
		return nil, nil, err
	}
	w, err := counters.Open(ctx, db)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(ctx))
	}
	return db, w, nil
}

// cutLife is a life in which the power is cut.
type cutLife struct {
	t    *testing.T
	fs   *vfs.Mem
	o    rekindle.Options
	ack  func(int32, int64)
	last [3]int64       // transaction of each worker
	seen rekindle.Stats // totals of all opens
}

func (l *cutLife) open() (*rekindle.DB, *counters.Workload) {
	l.t.Helper()
	db, w, err := openWorkload(l.t.Context(), l.fs, l.o)
	require.NoError(l.t, err)
	return db, w
}

// steps runs n transactions, with every now and then something else.
func (l *cutLife) steps(w *counters.Workload, n, every int, now func()) {
	for i := range n {
		worker := int32(i % 3)
		seq, err := w.Step(l.t.Context(), worker)
		require.NoError(l.t, err)
		l.last[worker] = seq
		if l.o.Durability == rekindle.Sync {
			l.ack(worker, seq)
		}
		if i%every == every-1 {
			now()
		}
	}
}

func (l *cutLife) checkpoint(db *rekindle.DB) { require.NoError(l.t, db.Checkpoint(l.t.Context())) }
func (l *cutLife) compact(db *rekindle.DB)    { require.NoError(l.t, db.Compact(l.t.Context())) }

func (l *cutLife) close(db *rekindle.DB) {
	s := db.Stats()
	l.seen.CompactedRows += s.CompactedRows
	l.seen.FreedSegments += s.FreedSegments
	l.seen.RowsFrozen += s.RowsFrozen
	l.seen.IndexRepairs += s.IndexRepairs
	require.NoError(l.t, db.Close(l.t.Context()))
	for worker, seq := range l.last { // now durable, if not before
		l.ack(int32(worker), seq)
	}
}

// plain commits, rotates segments, checkpoints, closes and opens again.
func (l *cutLife) plain() {
	for range 2 {
		db, w := l.open()
		l.steps(w, 90, 25, func() { l.checkpoint(db) })
		l.close(db)
	}
}

// compacting compacts and removes every segment of the log that can be, again and
// again, with rows in memory and with rows in the log.
func (l *cutLife) compacting() {
	for range 3 {
		db, w := l.open()
		l.compact(db)
		l.steps(w, 48, 16, func() {
			l.checkpoint(db)
			l.compact(db)
		})
		l.close(db)
	}
	require.NotZero(l.t, l.seen.CompactedRows)
	require.NotZero(l.t, l.seen.FreedSegments)
}

// freezing has all rows leave memory, again and again.
func (l *cutLife) freezing() {
	for range 2 {
		db, w := l.open()
		l.steps(w, 60, 10, func() {
			db.FreezeNow()
			l.checkpoint(db)
			l.compact(db)
		})
		l.close(db)
	}
	require.NotZero(l.t, l.seen.RowsFrozen)
}

// converting takes the database through all strategies.
func (l *cutLife) converting() {
	for _, strategy := range rekindle.IndexStrategies() {
		db, w := l.open()
		l.steps(w, 30, 12, func() { l.checkpoint(db) })
		l.close(db)
		require.NoError(l.t, rekindle.Convert(l.t.Context(), "/db", strategy, l.o.OnFS(l.fs)))
	}
}

// repairing begins with damaged indexes, which are rebuilt while they are in use.
func (l *cutLife) repairing() {
	db, w := l.open()
	damaged := func(err error) bool {
		return errors.Is(err, rekindle.ErrIndexDamaged) || errors.Is(err, rekindle.ErrCorrupt)
	}
	require.Eventually(l.t, func() bool {
		err := w.Check(l.t.Context(), nil)
		require.True(l.t, err == nil || damaged(err), err)
		return err == nil && db.Stats().IndexRepairs > 0
	}, 10*time.Second, time.Millisecond)
	l.checkpoint(db)
	l.steps(w, 24, 12, func() { l.checkpoint(db) })
	l.close(db)
	require.NotZero(l.t, l.seen.IndexRepairs)
}

// harmIndexes flips a bit in the middle of every index file.
func harmIndexes(t *testing.T, disk *vfs.Mem) {
	for _, name := range indexFiles(disk) {
		alter(t, disk, name, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	}
}

// TestPowerCutAtEveryOperation cuts the power before every file operation of lives
// in which everything happens, and looks at what each cut has left; and again
// before every operation of that recovery, and of the recovery from that.
func TestPowerCutAtEveryOperation(t *testing.T) {
	lives := []struct {
		name  string
		run   func(*cutLife)
		o     rekindle.Options
		often int // its share of the cuts
	}{
		{"plain", (*cutLife).plain, rekindle.Options{}, 2},
		{"lazy", (*cutLife).plain, rekindle.Options{Durability: rekindle.None}, 1},
		{"compacting", (*cutLife).compacting, rekindle.Options{}.Eager(), 1},
		{"freezing", (*cutLife).freezing, rekindle.Options{MemoryBudget: 1}.Eager(), 1},
		{"repairing", (*cutLife).repairing, rekindle.Options{}, 2},
	}
	for _, life := range lives {
		for i, strategy := range rekindle.IndexStrategies() {
			if life.name == "repairing" && strategy == "rebuild" {
				continue // has no files
			}
			o := life.o
			o.IndexStrategy, o.LogStreams = strategy, 1+i%2
			t.Run(path.Join(life.name, strategy), func(t *testing.T) {
				base := cutBase{disk: vfs.NewMem()}
				if life.name == "repairing" {
					base, _ = livedWorkload(t, o)
					harmIndexes(t, base.disk)
					o.VerifyOnOpen = true
				}
				cutPower(t, base, o, 3-life.often, life.run)
			})
		}
	}
	t.Run("converting", func(t *testing.T) {
		cutPower(t, cutBase{disk: vfs.NewMem()}, rekindle.Options{}, 2, (*cutLife).converting)
	})
}

// cutBase is a disk before a life, and what is acknowledged on it.
type cutBase struct {
	disk  *vfs.Mem
	acked map[int32]int64
}

// livedWorkload returns the disk after a life with two checkpoints, closed and as
// the end of the process would leave it.
func livedWorkload(t *testing.T, o rekindle.Options) (closed, killed cutBase) {
	closed = cutBase{vfs.NewMem(), map[int32]int64{}}
	l := &cutLife{t: t, fs: closed.disk, o: o, ack: func(worker int32, seq int64) { closed.acked[worker] = seq }}
	db, w := l.open()
	l.steps(w, 50, 20, func() { l.checkpoint(db) })
	killed = cutBase{closed.disk.CrashClone(nil, vfs.Kill), closed.acked}
	l.close(db)
	return closed, killed
}

// cutPower runs a life and cuts the power at every stride-th operation, times a
// factor unless it is 1. Those who look at what is left verify what the options
// say; the life itself does not.
func cutPower(t *testing.T, base cutBase, o rekindle.Options, factor int, run func(*cutLife)) {
	c := &cutChecker{ctx: t.Context(), o: o, deep: *powerCutDeep}
	c.o.Durability = rekindle.Sync
	stride := *powerCutStride
	if stride > 1 {
		stride *= factor
	}
	if testing.Short() {
		stride, c.deep = max(stride, 37*factor), max(c.deep, 100)
	}
	if base.acked == nil {
		base.acked = map[int32]int64{}
	}
	o.VerifyOnOpen = false
	before := base.disk.Ops()
	r := record(base.disk, stride, base.acked, c.check)
	run(&cutLife{t: t, fs: base.disk, o: o, ack: r.ack})
	require.NoError(t, r.stop())
	t.Logf("%d operations, %d power cuts, %d in recoveries", base.disk.Ops()-before, r.taken, c.inRecovery)
}

// cutChecker looks at what power cuts have left.
type cutChecker struct {
	ctx        context.Context
	o          rekindle.Options // waits for the disk, whatever the life does
	deep       int              // every deep-th cut is recovered from with further cuts
	inRecovery int
}

// maxDepth is how many power cuts follow each other, each in the recovery from the
// one before.
const maxDepth = 3

func (c *cutChecker) check(number int, cut powerCut) error {
	depth := maxDepth
	if number%c.deep == 0 {
		depth = 1
	}
	if number%8 == 0 {
		if err := c.verifyLog(cut.disk); err != nil {
			return err
		}
	}
	return c.recover(cut, depth)
}

// verifyLog takes nothing for damage that a power cut leaves of the log.
func (c *cutChecker) verifyLog(disk *vfs.Mem) error {
	if _, err := disk.Stat("/db/CURRENT"); err != nil { // there is no database yet
		return nil
	}
	o := c.o
	report, err := rekindle.Verify(c.ctx, "/db", o.OnFS(disk))
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		if f.Damage() && strings.HasSuffix(f.Path, ".log") {
			err = errors.Join(err, fmt.Errorf("damage found: %v", f))
		}
	}
	return err
}

// recover opens what a power cut has left and looks at everything. Before the
// last depth it cuts the power again, at operations of the recovery, of a commit
// and of a checkpoint.
func (c *cutChecker) recover(cut powerCut, depth int) error {
	var again *recorder
	if depth < maxDepth {
		again = record(cut.disk, min(*powerCutStride, 13), cut.acked, func(number int, second powerCut) error {
			next := maxDepth
			if number%c.deep == c.deep/2 {
				next = depth + 1
			}
			return c.recover(second, next)
		})
	}
	db, w, err := openWorkload(c.ctx, cut.disk, c.o)
	if err != nil {
		return err
	}
	err = w.Check(c.ctx, cut.acked)
	if err == nil && cut.mode == vfs.Kill {
		err = c.secured(cut, w)
	}
	if again != nil {
		err = errors.Join(err, c.goOn(db, w, again))
		c.inRecovery += again.taken
	}
	return errors.Join(err, db.Close(c.ctx))
}

// goOn commits and checkpoints.
func (c *cutChecker) goOn(db *rekindle.DB, w *counters.Workload, again *recorder) error {
	seq, err := w.Step(c.ctx, 0)
	if err == nil {
		again.ack(0, seq)
		err = db.Checkpoint(c.ctx)
	}
	return errors.Join(err, again.stop())
}

// secured cuts the power after a process has been killed and the database was
// opened again: what it serves since cannot be lost any more.
func (c *cutChecker) secured(cut powerCut, w *counters.Workload) error {
	left := powerCut{op: cut.op, disk: cut.disk.CrashClone(nil, vfs.Strict), acked: map[int32]int64{}}
	for worker := range int32(3) {
		seq, err := w.Step(c.ctx, worker)
		if err != nil {
			return err
		}
		left.acked[worker] = seq - 1
	}
	if err := c.recover(left, maxDepth); err != nil {
		return fmt.Errorf("after a kill and an open: %w", err)
	}
	return nil
}

// TestNestedDirectory: a database in directories that did not exist either is
// not lost with their names.
func TestNestedDirectory(t *testing.T) {
	const dir = "/a/b/c/db"
	fs := vfs.NewMem()
	db, err := rekindle.Open(t.Context(), dir, rekindle.Options{}.OnFS(fs))
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1})) })
	cut := fs.CrashClone(nil, vfs.Strict)
	require.NoError(t, db.Close(t.Context()))

	db, err = rekindle.Open(t.Context(), dir, rekindle.Options{}.OnFS(cut))
	require.NoError(t, err)
	items, err = rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	require.Len(t, allItems(t, db, items), 1)
	require.NoError(t, db.Close(t.Context()))
}
