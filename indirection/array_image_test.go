package indirection

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// checkArray compares an array with a model by Scan and by Load, on slots that
// are in use and on others.
func checkArray(t testing.TB, r *rig, x *Array, model map[uint64]Word) {
	t.Helper()
	n := 0
	require.NoError(t, x.Scan(0, func(ordinal uint64, w Word) bool {
		if w != model[ordinal] {
			t.Fatalf("scan: ordinal %d: %v instead of %v", ordinal, w, model[ordinal])
		}
		n++
		return true
	}))
	require.Equal(t, len(model), n)
	r.handle.Pin()
	defer r.handle.Unpin()
	for ordinal := range model {
		for _, ordinal := range []uint64{ordinal, ordinal + 1} {
			if w, err := x.Load(ordinal); err != nil || w != model[ordinal] {
				t.Fatalf("ordinal %d: %v (%v) instead of %v", ordinal, w, err, model[ordinal])
			}
		}
	}
}

// Random writes to arrays opened from each generation, against a model.
func TestArrayOnImageModel(t *testing.T) {
	rng := newRand(t)
	s := newSeries(t, vfs.NewMem(), "/db")
	const space = 140_000
	for range 14 {
		s.step(t, s.randomChanges(rng, space))
		r := newRig(t)
		x := NewArray(r.domain, r.arena, testTable, s.image)
		model := map[uint64]Word{}
		for ordinal, w := range s.model {
			model[ordinal] = w
		}
		require.Equal(t, s.image.HighWater(), x.HighWater())
		for range 2 {
			writeRandomly(t, rng, r, x, model, space)
			checkArray(t, r, x, model)
		}
		require.NoError(t, x.Close())
		require.Zero(t, r.arena.Stats().InUse)
		s.check(t, s.image)
	}
}

// writeRandomly uses all ways to write.
func writeRandomly(t *testing.T, rng *rand.Rand, r *rig, x *Array, model map[uint64]Word, space uint64) {
	set := func(ordinal uint64, w Word) {
		if model[ordinal] = w; w == 0 {
			delete(model, ordinal)
		}
	}
	r.handle.Pin()
	defer r.handle.Unpin()
	var batch []Change
	for range rng.IntN(2000) {
		c := Change{Ordinal: rng.Uint64N(space), Word: logWord(rng.Uint64N(3))}
		if rng.IntN(3) == 0 {
			c.Word = 0
		}
		if rng.IntN(4) == 0 {
			c.OnlyIf = logWord(rng.Uint64N(3))
		}
		batch = append(batch, c)
		if c.OnlyIf == 0 || c.OnlyIf == model[c.Ordinal] {
			set(c.Ordinal, c.Word)
		}
	}
	require.NoError(t, x.SetBatch(0, batch))
	for range 300 {
		ordinal, w := rng.Uint64N(space), randomWord(rng)
		if rng.IntN(2) == 0 {
			require.NoError(t, x.Set(0, ordinal, w))
			set(ordinal, w)
			continue
		}
		old := model[ordinal]
		if rng.IntN(3) == 0 {
			old++
		}
		swapped, err := x.CompareAndSwap(0, ordinal, old, w)
		require.NoError(t, err)
		require.Equal(t, old == model[ordinal], swapped)
		if swapped {
			set(ordinal, w)
		}
	}
}

// pagedSeries has a page that is patched, one that is whole, one that is only a
// patch, and an empty one, in each of two PIAs.
func pagedSeries(t testing.TB, fs vfs.FS, dir string) *series {
	s := newSeries(t, fs, dir)
	changes := map[uint64]Word{}
	for _, pia := range []uint64{0, 1} {
		for page := range uint64(2) {
			for slot := range uint64(PageSlots) {
				changes[pia<<piaShift+page<<pageShift+slot] = logWord(slot)
			}
		}
		changes[pia<<piaShift+2<<pageShift+9] = logWord(9)
	}
	s.step(t, changes)
	s.step(t, map[uint64]Word{7: logWord(1000), 1<<piaShift + 7: logWord(1001)})
	return s
}

// Opening and scanning takes no memory, reading only that of the page words.
func TestUntouchedPagesStayInTheFile(t *testing.T) {
	r := newRig(t)
	s := pagedSeries(t, vfs.NewMem(), "/db")
	x := r.array(t, testTable, s.image)
	n := 0
	require.NoError(t, x.Scan(0, func(uint64, Word) bool { n++; return true }))
	require.Equal(t, len(s.model), n)
	require.Zero(t, r.arena.Stats().Requested)

	require.Equal(t, logWord(3), r.load(t, x, PageSlots+3))
	require.EqualValues(t, blockBytes, r.arena.Stats().Requested)
	require.Equal(t, logWord(1000), r.load(t, x, 7))
	require.Equal(t, logWord(8), r.load(t, x, 8), "not in the patch")
	require.Equal(t, logWord(9), r.load(t, x, 2<<pageShift+9), "only in the patch")
	require.Zero(t, r.load(t, x, 2<<pageShift+8))
	require.Zero(t, r.load(t, x, 100<<pageShift))
	require.EqualValues(t, blockBytes, r.arena.Stats().Requested)
}

func TestCloseUnmapsWhatIsLeft(t *testing.T) {
	fs := vfs.NewMem()
	s := pagedSeries(t, fs, "/db")
	r := newRig(t)
	x, y := NewArray(r.domain, r.arena, testTable, s.image), NewArray(r.domain, r.arena, testTable, s.image)
	r.load(t, x, 7)
	s.close(t)
	require.NoError(t, x.Close())
	require.Equal(t, 2, fs.Handles(), "the other array holds them")
	require.Equal(t, logWord(1000), r.load(t, y, 7))
	require.NoError(t, y.Close())
	require.Zero(t, fs.Handles())
	require.Zero(t, r.arena.Stats().InUse)
}

// At the memory limit reads go on.
func TestReadsAtTheMemoryLimit(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	a := arena.New(arena.Config{Limit: arena.ChunkSize})
	for err := error(nil); err == nil; {
		_, err = a.Alloc(0, blockBytes)
	}
	for err := error(nil); err == nil; {
		_, err = a.Alloc(0, 16)
	}
	d := epoch.NewDomain(a)
	r := &rig{arena: a, domain: d, handle: d.Register()}
	x := NewArray(d, a, testTable, s.image)
	before := a.Stats().Requested
	checkArray(t, r, x, s.model)
	require.Equal(t, before, a.Stats().Requested)
	require.NoError(t, x.Close())
}

// FreeOrdinals of an array leaves out pages that were written.
func TestArrayFreeOrdinals(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	require.Equal(t, logWord(3), r.load(t, x, PageSlots+3)) // checked, not written
	r.handle.Pin()
	require.NoError(t, x.Set(0, 3<<pageShift, logWord(1)))
	require.NoError(t, x.Set(0, PageSlots+4, logWord(1)))
	require.NoError(t, x.Set(0, 1<<30, logWord(1)))
	r.handle.Unpin()
	got := map[uint64]bool{}
	for from := uint64(0); ; {
		next, err := x.FreeOrdinals(from, 100, func(ordinal uint64) {
			require.False(t, got[ordinal])
			got[ordinal] = true
		})
		require.NoError(t, err)
		if next == from {
			break
		}
		from = next
	}
	for ordinal := uint64(1); ordinal < s.image.HighWater(); ordinal++ {
		written := pageOf(ordinal) == 3 || pageOf(ordinal) == 1
		require.Equal(t, s.model[ordinal] == 0 && !written, got[ordinal], "ordinal %d", ordinal)
	}
	next, err := r.array(t, testTable, nil).FreeOrdinals(17, 10, nil)
	require.NoError(t, err)
	require.EqualValues(t, 17, next)
}

// Pages without room are not read.
func TestFreeOrdinalsLeavesFullPagesAlone(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	undo := overwrite(t, s.fs, s.path(1), headerBytes+pageBytes, []byte{1, 2, 3}) // page 1
	defer undo()
	im := s.open(t, s.image.newest)
	_, err := im.ReadPage(1, new([PageSlots]Word))
	require.Error(t, err)
	_, err = im.FreeOrdinals(0, 1<<20, func(uint64) {})
	require.NoError(t, err)
	require.NoError(t, im.Close())
}

// Readers and writers meet on pages that nobody has touched yet.
func TestConcurrentFirstTouch(t *testing.T) {
	s := newSeries(t, vfs.NewMem(), "/db")
	rng := newRand(t)
	for range 9 {
		changes := s.randomChanges(rng, 100_000)
		for ordinal, w := range changes {
			if w != 0 { // the low bits will count
				changes[ordinal] = logWord(ordinal << 13)
			}
		}
		s.step(t, changes)
	}
	ordinals := make([]uint64, 0, len(s.model))
	for ordinal := range s.model {
		ordinals = append(ordinals, ordinal)
	}
	for range 5 {
		r := newRig(t)
		x := NewArray(r.domain, r.arena, testTable, s.image)
		var wg sync.WaitGroup
		for task := range 4 {
			h := r.domain.Register()
			seed := rng.Uint64()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(task)))
				for range 4000 {
					ordinal := ordinals[rng.IntN(len(ordinals))]
					h.Pin()
					w, err := x.Load(ordinal)
					if err != nil || w&^0xffff != s.model[ordinal] {
						t.Errorf("ordinal %d: %v, %v", ordinal, w, err)
					}
					if task%2 == 0 { // count in the low bits
						if _, err := x.CompareAndSwap(h.Shard(), ordinal, w, w+1); err != nil {
							t.Error(err)
						}
					}
					h.Unpin()
				}
			})
		}
		wg.Go(func() {
			err := x.Scan(0, func(ordinal uint64, w Word) bool { return w&^0xffff == s.model[ordinal] })
			if err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		require.NoError(t, x.Close())
	}
}

// Concurrent increments by CompareAndSwap are all there in the end.
func TestConcurrentCompareAndSwap(t *testing.T) {
	r := newRig(t)
	x := r.array(t, 1, nil)
	const tasks, rounds, slots = 4, 3000, 5
	var wg sync.WaitGroup
	for task := range tasks {
		h := r.domain.Register()
		wg.Go(func() {
			for i := range rounds {
				ordinal := uint64(i%slots) * 40_000
				for swapped := false; !swapped; {
					h.Pin()
					w, err := x.Load(ordinal)
					if err == nil {
						swapped, err = x.CompareAndSwap(h.Shard(), ordinal, w, w+8)
					}
					h.Unpin()
					if err != nil {
						t.Errorf("task %d: %v", task, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range uint64(slots) {
		require.Equal(t, Word(tasks*rounds/slots*8), r.load(t, x, i*40_000))
	}
	require.EqualValues(t, 3*blockBytes+slots*pageBytes, r.arena.Stats().Requested, "losers gave their pages back")
}

// Opening reads the same bytes and takes the same memory whatever the rows.
func TestOpenDoesNotDependOnRows(t *testing.T) {
	type cost struct{ reads, bytes, maps int64 }
	measure := func(rows uint64) (c cost, allocated float64) {
		s := newSeries(t, vfs.NewMem(), "/db")
		changes := map[uint64]Word{}
		for ordinal := uint64(0); ordinal < rows; ordinal += 3 {
			changes[ordinal] = logWord(ordinal)
		}
		s.step(t, changes)
		s.step(t, map[uint64]Word{7: logWord(1)})
		fs := vfs.Wrap(s.fs, func(op vfs.Op, do func(vfs.Op) error) error {
			switch op.Kind {
			case vfs.OpReadAt:
				c.reads++
				c.bytes += op.Size
			case vfs.OpMap:
				c.maps++
			}
			return do(op)
		})
		im, err := OpenImage(fs, s.image.newest, s.path, testID)
		require.NoError(t, err)
		r := newRig(t)
		allocated = testing.AllocsPerRun(10, func() {
			require.NoError(t, NewArray(r.domain, r.arena, testTable, im).Close())
		})
		require.Zero(t, r.arena.Stats().Requested)
		require.NoError(t, im.Close())
		return c, allocated
	}
	few, fewAllocs := measure(1000)
	many, manyAllocs := measure(300_000)
	require.Equal(t, few, many)
	require.Equal(t, fewAllocs, manyAllocs)
	require.Less(t, few.bytes, int64(2000))
}

// The Go heap does not grow with the rows: 8 bytes in 65,536 of them.
func TestGoHeapStaysFlat(t *testing.T) {
	r := newRig(t)
	x := r.array(t, 1, nil)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	require.NoError(t, x.Set(0, 1, logWord(1)))
	before := heap()
	for ordinal := uint64(1); ordinal < 1<<20; ordinal += 100 {
		require.NoError(t, x.Set(0, ordinal, logWord(ordinal)))
	}
	require.Less(t, heap()-before, int64(100))
}
