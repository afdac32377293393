package rekindle_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/faulttest"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

var (
	walkSeed  = flag.Uint64("walk.seed", 0, "first seed of TestFaultsOnFaults; 0 = random")
	walkCount = flag.Uint64("walk.count", 8, "walks of TestFaultsOnFaults")
)

// faultWalk is a database that lives on a disk that fails in several ways, at
// random, in the midst of everything: also in a recovery from a power cut during
// a checkpoint that had failed. One goroutine commits, so the database has to be in
// the state of the last acknowledged commit, or of one behind it whose outcome
// nobody knows.
type faultWalk struct {
	t      *testing.T
	rng    *rand.Rand
	o      rekindle.Options
	disk   *vfs.Mem
	fs     vfs.FS
	faults *errorfs.Switch
	states []map[int64]string // that the database may be in, the acknowledged one first
	writes int
	diary  []string
	failed *atomic.Int64
}

func TestFaultsOnFaults(t *testing.T) {
	seed := *walkSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	var failed atomic.Int64
	for i := range *walkCount {
		walkFaults(t, seed+i, &failed)
	}
	t.Logf("%d walks from -walk.seed %d, %d faults", *walkCount, seed, failed.Load())
}

func walkFaults(t *testing.T, seed uint64, failed *atomic.Int64) {
	w := &faultWalk{t: t, rng: rand.New(rand.NewPCG(seed, 0)), disk: vfs.NewMem(), states: []map[int64]string{{}}, failed: failed}
	defer func() {
		if t.Failed() {
			t.Logf("-walk.seed %d\n%s", seed, strings.Join(w.diary, "\n"))
		}
	}()
	w.o = rekindle.Options{
		SegmentBytes:    smallSegment,
		CheckpointBytes: []int64{-1, 100 << 10}[w.rng.IntN(2)],
		MemoryBudget:    []int64{-1, 200 << 10}[w.rng.IntN(2)],
		LogStreams:      1 + w.rng.IntN(3),
		IndexStrategy:   w.strategy(),
	}
	for range 12 {
		w.life()
	}
}

func (w *faultWalk) strategy() string {
	names := rekindle.IndexStrategies()
	return names[w.rng.IntN(len(names))]
}

func (w *faultWalk) note(what string, err error) {
	w.diary = append(w.diary, fmt.Sprintf("%s: %v", what, err))
}

// mayFail accepts the errors that faults explain.
func (w *faultWalk) mayFail(what string, err error) {
	w.note(what, err)
	if err != nil && !errors.Is(err, rekindle.ErrCheckpointStalled) {
		require.ErrorIs(w.t, err, errorfs.ErrInjected, what)
	}
}

// plan makes the disk fail in one or two ways, now and then or from some moment on,
// while faults are switched on.
func (w *faultWalk) plan() {
	kinds, disk := faulttest.Kinds(), w.disk
	var plans []errorfs.Injector
	for range 1 + w.rng.IntN(2) {
		k := kinds[w.rng.IntN(len(kinds))]
		when := errorfs.Probability(1/float64(int(20)<<w.rng.IntN(6)), w.rng.Uint64())
		if w.rng.IntN(3) == 0 {
			when = errorfs.FromNth(1 + w.rng.IntN(200))
		}
		fails := errorfs.All(k.Fails, when)
		plans = append(plans, errorfs.Func(func(op vfs.Op) error {
			if !fails(op) {
				return nil
			}
			w.failed.Add(1)
			if k.Effect != nil && op.Kind != vfs.OpSyncDir {
				_ = k.Effect(disk, op.Path) // of a file that is not there by now there is nothing to lose
			}
			return k.Err(op, k.Cause)
		}))
		w.note("plan "+k.Name, nil)
	}
	w.faults = errorfs.Toggle(errorfs.First(plans...))
	w.fs = errorfs.Wrap(disk, w.faults)
}

func (w *faultWalk) set(on bool) {
	if on {
		w.faults.On()
	} else {
		w.faults.Off()
	}
}

// cut takes the power away.
func (w *faultWalk) cut() {
	mode := vfs.CrashMode(w.rng.IntN(int(vfs.LastFirst) + 1))
	w.disk = w.disk.CrashClone(w.rng, mode)
	w.note("power cut, "+mode.String(), nil)
}

func (w *faultWalk) life() {
	w.plan()
	db, items := w.open()
	w.check(db, items)
	for range 10 + w.rng.IntN(60) {
		if w.rng.IntN(8) == 0 {
			w.set(w.rng.IntN(3) > 0)
		}
		switch w.rng.IntN(15) {
		case 0:
			w.mayFail("checkpoint", db.Checkpoint(w.t.Context()))
		case 1:
			w.mayFail("compaction", db.Compact(w.t.Context()))
		default:
			w.commit(db, items)
		}
	}
	if w.rng.IntN(3) > 0 {
		w.cut() // what follows happens to a disk that nobody looks at
		_ = db.Close(w.t.Context())
		return
	}
	w.mayFail("close", db.Close(w.t.Context()))
	if w.rng.IntN(2) == 0 {
		w.o.IndexStrategy = "" // it may have either now
		w.mayFail("convert", rekindle.Convert(w.t.Context(), "/db", w.strategy(), rekindle.Options{}.OnFS(w.fs)))
	}
	if w.rng.IntN(2) == 0 {
		w.cut()
	}
}

// open recovers, in the end without faults, and with power cuts between the attempts.
func (w *faultWalk) open() (*rekindle.DB, *rekindle.Table[item]) {
	for try := range 4 {
		w.set(try < 3 && w.rng.IntN(2) == 0)
		o := w.o
		o.VerifyOnOpen = w.rng.IntN(4) == 0
		db, err := rekindle.Open(w.t.Context(), "/db", o.OnFS(w.fs))
		w.set(false)
		w.mayFail("open", err)
		if err == nil {
			items, err := rekindle.OpenTable[item](w.t.Context(), db, "items")
			require.NoError(w.t, err)
			return db, items
		}
		if w.rng.IntN(2) == 0 {
			w.cut()
			w.plan()
		}
	}
	require.FailNow(w.t, "does not open without faults")
	return nil, nil
}

func (w *faultWalk) commit(db *rekindle.DB, items *rekindle.Table[item]) {
	var next map[int64]string
	err := db.Update(w.t.Context(), func(tx *rekindle.Tx) error {
		next = maps.Clone(w.states[len(w.states)-1])
		for range []int{3, 10, 150}[w.rng.IntN(40)/19] {
			if err := w.write(tx, items, next); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
		w.states = []map[int64]string{next}
	case errors.Is(err, rekindle.ErrCommitUnknown):
		w.states = append(w.states, next)
		w.mayFail("commit", err)
	default:
		w.mayFail("commit", err)
	}
}

// write changes or deletes a row, also in state.
func (w *faultWalk) write(tx *rekindle.Tx, items *rekindle.Table[item], state map[int64]string) error {
	id := w.rng.Int64N(200)
	if w.rng.IntN(3) == 0 {
		delete(state, id)
		if err := items.Delete(tx, &item{ID: id}); !errors.Is(err, rekindle.ErrNotFound) {
			return err
		}
		return nil
	}
	w.writes++
	note := fmt.Sprint(w.writes, strings.Repeat(".", w.rng.IntN(600)))
	state[id] = note
	return items.Upsert(tx, &item{ID: id, Name: fmt.Sprint(id), Group: int32(w.writes % 10), Note: &note})
}

// check compares what a recovery serves with the states that there can be.
func (w *faultWalk) check(db *rekindle.DB, items *rekindle.Table[item]) {
	got := map[int64]string{}
	for _, row := range allItems(w.t, db, items) {
		got[row.ID] = *row.Note
	}
	for _, state := range w.states {
		if maps.Equal(state, got) {
			w.states = []map[int64]string{state}
			_, err := db.CrossCheck(w.t.Context())
			require.NoError(w.t, err)
			return
		}
	}
	require.Equal(w.t, w.states[0], got, "none of %d states", len(w.states))
}
