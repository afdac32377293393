package rekindle_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var (
	powerCutStride = flag.Int("powercut.stride", 13, "cut the power before every n-th operation; 1 takes many minutes")
	powerCutDeep   = flag.Int("powercut.deep", 60, "cut the power again while recovering from every n-th cut")
)

// powerCut is a disk as it was left before some operation, and what had been
// acknowledged by then.
type powerCut struct {
	op    int
	disk  *vfs.Mem
	acked map[int32]int64
}

// recorder takes powerCuts before every stride-th operation.
type recorder struct {
	fs     *vfs.Mem
	rng    *rand.Rand
	stride int
	mu     sync.Mutex
	acked  map[int32]int64
	cuts   []powerCut
}

func record(fs *vfs.Mem, stride int, acked map[int32]int64) *recorder {
	r := &recorder{fs: fs, rng: rand.New(rand.NewPCG(7, 7)), stride: stride, acked: maps.Clone(acked)}
	fs.OnOp(func(n int, _ vfs.Op) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n%r.stride == 0 {
			for _, mode := range []vfs.CrashMode{vfs.Strict, vfs.Keep, vfs.Random, vfs.Random} {
				r.cuts = append(r.cuts, powerCut{n, fs.CrashClone(r.rng, mode), maps.Clone(r.acked)})
			}
		}
		return nil
	})
	return r
}

func (r *recorder) ack(worker int32, seq int64) {
	r.mu.Lock()
	r.acked[worker] = seq
	r.mu.Unlock()
}

// stop ends the recording and returns what was recorded.
func (r *recorder) stop() []powerCut {
	r.fs.OnOp(nil)
	return r.cuts
}

func openWorkload(t *testing.T, fs vfs.FS, o rekindle.Options) (*rekindle.DB, *counters.Workload) {
	t.Helper()
	o.SegmentBytes, o.CheckpointBytes = 64<<10, -1
	db, err := rekindle.Open(t.Context(), "/db", o.OnFS(fs))
	require.NoError(t, err)
	w, err := counters.Open(t.Context(), db)
	require.NoError(t, err)
	return db, w
}

// script commits, rotates segments, checkpoints, closes and opens again.
func script(t *testing.T, fs *vfs.Mem, o rekindle.Options, ack func(int32, int64)) {
	for range 2 {
		db, w := openWorkload(t, fs, o)
		for i := range int32(90) {
			seq, err := w.Step(t.Context(), i%3)
			require.NoError(t, err)
			ack(i%3, seq)
			if i%25 == 24 {
				require.NoError(t, db.Checkpoint(t.Context()))
			}
		}
		require.NoError(t, db.Close(t.Context()))
	}
}

// TestPowerCutAtEveryOperation cuts the power before every file operation of a
// life with commits, rotations, checkpoints, a close and an open, and looks at
// what each cut has left; and again before every operation of that recovery.
func TestPowerCutAtEveryOperation(t *testing.T) {
	stride, deep := *powerCutStride, *powerCutDeep
	if testing.Short() {
		stride, deep = max(stride, 37), max(deep, 100)
	}
	for i, strategy := range rekindle.IndexStrategies() {
		o := rekindle.Options{IndexStrategy: strategy, LogStreams: 1 + i%2}
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			r := record(fs, stride, map[int32]int64{})
			script(t, fs, o, r.ack)
			cuts := r.stop()
			t.Logf("%d operations, %d power cuts", fs.Ops(), len(cuts))
			for i, cut := range cuts {
				if i%deep == 0 {
					checkRecovery(t, cut, o)
				} else {
					checkCut(t, cut, o)
				}
			}
		})
	}
}

// TestPowerCutWhileCompacting does the same in a life in which every segment of the
// log that can be is compacted and removed, again and again.
func TestPowerCutWhileCompacting(t *testing.T) {
	stride, deep := 2**powerCutStride-1, *powerCutDeep
	if testing.Short() {
		stride, deep = max(stride, 61), max(deep, 100)
	}
	for streams, strategy := range map[int]string{1: rekindle.IndexStrategies()[0], 2: "rebuild"} {
		o := rekindle.Options{IndexStrategy: strategy, LogStreams: streams}.Eager()
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			r := record(fs, stride, map[int32]int64{})
			compactingScript(t, fs, o, r.ack)
			for i, cut := range r.stop() {
				if i%deep == 0 {
					checkRecovery(t, cut, o)
				} else {
					checkCut(t, cut, o)
				}
			}
		})
	}
}

// compactingScript compacts with rows in memory and with rows in the log.
func compactingScript(t *testing.T, fs *vfs.Mem, o rekindle.Options, ack func(int32, int64)) {
	var moved, freed int64
	for range 3 {
		db, w := openWorkload(t, fs, o)
		require.NoError(t, db.Compact(t.Context()))
		for i := range int32(48) {
			seq, err := w.Step(t.Context(), i%3)
			require.NoError(t, err)
			ack(i%3, seq)
			if i%16 == 15 {
				require.NoError(t, db.Checkpoint(t.Context()))
				require.NoError(t, db.Compact(t.Context()))
			}
		}
		moved, freed = moved+db.Stats().CompactedRows, freed+db.Stats().FreedSegments
		require.NoError(t, db.Close(t.Context()))
	}
	require.NotZero(t, moved)
	require.NotZero(t, freed)
	t.Logf("%d operations, %d rows moved, %d segments removed", fs.Ops(), moved, freed)
}

// checkCut opens what a power cut has left and looks at everything.
func checkCut(t *testing.T, cut powerCut, o rekindle.Options) {
	t.Helper()
	db, w := openWorkload(t, cut.disk, o)
	require.NoError(t, w.Check(t.Context(), cut.acked), "operation %d", cut.op)
	require.NoError(t, db.Close(t.Context()))
}

// checkRecovery is checkCut with a second power cut at every operation of the
// recovery, a commit and a checkpoint.
func checkRecovery(t *testing.T, cut powerCut, o rekindle.Options) {
	t.Helper()
	r := record(cut.disk, min(*powerCutStride, 5), cut.acked)
	db, w := openWorkload(t, cut.disk, o)
	require.NoError(t, w.Check(t.Context(), cut.acked), "operation %d", cut.op)
	seq, err := w.Step(t.Context(), 0)
	require.NoError(t, err)
	r.ack(0, seq)
	require.NoError(t, db.Checkpoint(t.Context()))
	for _, second := range r.stop() {
		checkCut(t, second, o)
	}
	require.NoError(t, db.Close(t.Context()))
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
