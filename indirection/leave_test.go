package indirection

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// set writes a word within its own pin.
func (r *rig) set(t testing.TB, x *Array, ordinal uint64, w Word) {
	t.Helper()
	r.handle.Pin()
	defer r.handle.Unpin()
	require.NoError(t, x.Set(0, ordinal, w))
}

// leave lets pages go and returns how many did.
func leave(t testing.TB, x *Array, pages ...uint64) int64 {
	t.Helper()
	before := x.Bytes()
	bytes, err := x.Leave(t.Context(), pages)
	require.NoError(t, err)
	require.Equal(t, bytes, before-x.Bytes())
	return bytes / pageBytes
}

// inUse is the memory of the arena when everything retired is free.
func (r *rig) inUse(t testing.TB) int64 {
	t.Helper()
	require.NoError(t, r.domain.Barrier(t.Context()))
	r.domain.Reclaim()
	return r.arena.Stats().InUse
}

// Pages of all kinds leave memory when they are as the image has them, are read from
// it, and come back when they are written.
func TestPagesLeave(t *testing.T) {
	r := newRig(t)
	s := pagedSeries(t, vfs.NewMem(), "/db")
	x := r.array(t, testTable, s.image)
	kinds := []struct {
		name string
		page uint64
		slot uint64 // of a row
	}{{"patched", 0, 7}, {"whole", 1, 3}, {"patch without base", 2, 9}, {"empty", 3, 5}, {"of another PIA", 128, 7}, {"outside of the image", 1 << 20, 5}}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			ordinal := k.page<<pageShift + k.slot
			word := s.model[ordinal]
			for range 2 {
				r.set(t, x, ordinal, FromRef(64))
				require.Zero(t, leave(t, x, k.page), "a version is in memory")
				r.set(t, x, ordinal, logWord(5555))
				require.Zero(t, leave(t, x, k.page), "the image has another address")
				r.set(t, x, ordinal, word)
				before := r.inUse(t)
				require.EqualValues(t, 1, leave(t, x, k.page))
				require.Less(t, r.inUse(t), before)
				require.Equal(t, word, r.load(t, x, ordinal))
				require.Equal(t, s.model[ordinal+1], r.load(t, x, ordinal+1))
				checkArray(t, r, x, s.model)
				require.Zero(t, leave(t, x, k.page), "it is not there")
			}
		})
	}
	require.Zero(t, x.Bytes())
	require.Zero(t, leave(t, x, 1<<30), "a page without a block")
	require.Zero(t, leave(t, r.array(t, testTable, nil), 0), "an array without an image")
}

// All orders in which a writer can meet a page that leaves.
func TestWritersMeetLeavingPage(t *testing.T) {
	const ordinal, page = PageSlots + 3, 1
	s := pagedSeries(t, vfs.NewMem(), "/db")
	before, after := s.model[ordinal], logWord(4444)
	start := func(t *testing.T) (*rig, *Array, *base) {
		r := newRig(t)
		x := r.array(t, testTable, s.image)
		r.set(t, x, ordinal, before) // into the arena
		return r, x, x.newest.Load()
	}
	mark := func(t *testing.T, r *rig, x *Array) {
		h := r.domain.Register()
		done, err := x.mark(h, x.newest.Load(), page)
		require.NoError(t, err)
		require.True(t, done)
		state, _ := x.pageState(page)
		require.True(t, isLeaving(state))
	}
	finish := func(t *testing.T, r *rig, x *Array) int64 {
		bytes, err := x.leave(r.domain.Register(), x.newest.Load(), page)
		require.NoError(t, err)
		return bytes
	}
	swap := func(t *testing.T, r *rig, x *Array) {
		swapped, err := x.CompareAndSwap(0, ordinal, before, after)
		require.NoError(t, err)
		require.True(t, swapped)
	}

	t.Run("found before the mark, written after it", func(t *testing.T) {
		r, x, _ := start(t)
		r.handle.Pin()
		at := x.arenaPage(ordinal)
		mark(t, r, x)
		require.True(t, x.slot(at, ordinal).CompareAndSwap(uint64(before), uint64(after)))
		r.handle.Unpin()
		require.Zero(t, finish(t, r, x))
		require.Equal(t, after, r.load(t, x, ordinal))
		require.Equal(t, at, x.arenaPage(ordinal))
	})
	t.Run("written between mark and end, and back", func(t *testing.T) {
		r, x, _ := start(t)
		mark(t, r, x)
		r.handle.Pin()
		swap(t, r, x)
		swapped, err := x.CompareAndSwap(0, ordinal, after, before)
		require.NoError(t, err)
		require.True(t, swapped)
		r.handle.Unpin()
		require.Zero(t, finish(t, r, x), "cancelled, whatever the words are")
		require.NotZero(t, x.arenaPage(ordinal))
	})
	t.Run("read between mark and end", func(t *testing.T) {
		r, x, _ := start(t)
		mark(t, r, x)
		require.Equal(t, before, r.load(t, x, ordinal))
		require.Equal(t, s.model[ordinal+1], r.load(t, x, ordinal+1))
		checkArray(t, r, x, s.model)
		swapped, err := x.CompareAndSwap(0, ordinal, after, before)
		require.NoError(t, err)
		require.False(t, swapped, "another word")
		require.NotZero(t, finish(t, r, x), "nobody wrote")
	})
	t.Run("written after the end", func(t *testing.T) {
		r, x, _ := start(t)
		r.handle.Pin()
		at := x.arenaPage(ordinal)
		mark(t, r, x)
		require.NotZero(t, finish(t, r, x)) // without waiting for the pin, which writes no more
		other := r.domain.Register()
		other.Pin()
		swap(t, r, x)
		other.Unpin()
		require.NotEqual(t, at, x.arenaPage(ordinal))
		r.domain.Reclaim()
		require.EqualValues(t, before, x.slot(at, ordinal).Load(), "memory is free while a reader looks at it")
		r.handle.Unpin()
		require.Equal(t, after, r.load(t, x, ordinal))
	})
	t.Run("marked again by the time of the write", func(t *testing.T) {
		r, x, _ := start(t)
		block, at := x.block(page), x.arenaPage(ordinal)
		mark(t, r, x)
		found, err := x.moveToArena(0, block, page)
		require.NoError(t, err)
		require.Equal(t, at, found)
		mark(t, r, x)
		require.NotZero(t, finish(t, r, x))
		found, err = x.moveToArena(0, block, page)
		require.NoError(t, err)
		require.Equal(t, found, x.arenaPage(ordinal))
		checkArray(t, r, x, s.model)
	})
}

// Leave waits for the pins that a writer may have found the page in, and gives up
// when its context ends.
func TestLeaveWaitsForPins(t *testing.T) {
	const ordinal, page = PageSlots + 3, 1
	s := pagedSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	r.set(t, x, ordinal, s.model[ordinal])

	r.handle.Pin()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := x.Leave(ctx, []uint64{page})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotZero(t, x.arenaPage(ordinal), "it stays")

	at := x.arenaPage(ordinal)
	done := make(chan int64)
	go func() { done <- leave(t, x, page) }()
	for { // until the page is marked
		if state, _ := x.pageState(page); isLeaving(state) {
			break
		}
		time.Sleep(time.Microsecond)
	}
	require.True(t, x.slot(at, ordinal).CompareAndSwap(uint64(s.model[ordinal]), uint64(logWord(4))))
	r.handle.Unpin()
	require.Zero(t, <-done)
	require.Equal(t, logWord(4), r.load(t, x, ordinal))
}

// Who holds the pages of an array needs no memory for what is there.
func TestHold(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	release := x.Hold()
	r.set(t, x, PageSlots, s.model[PageSlots])
	done := make(chan int64)
	go func() { done <- leave(t, x, 1) }()
	select {
	case <-done:
		t.Fatal("a page leaves that is held")
	case <-time.After(5 * time.Millisecond):
	}
	requested := r.arena.Stats().Requested
	r.set(t, x, PageSlots, logWord(8))
	r.set(t, x, PageSlots, s.model[PageSlots])
	require.Equal(t, requested, r.arena.Stats().Requested)
	release()
	require.EqualValues(t, 1, <-done)
}

// A page whose image is damaged stays in memory, also if that happens in between.
func TestDamagedPageDoesNotLeave(t *testing.T) {
	if !vfs.MapsFiles {
		t.Skip("needs a mapping")
	}
	s := pagedSeries(t, vfs.OS(), t.TempDir())
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	r.set(t, x, PageSlots, s.model[PageSlots])
	const at = headerBytes + pageBytes + 8 // in page 1
	undo := overwrite(t, s.fs, s.path(1), at, []byte{1, 2, 3})
	require.Zero(t, leave(t, x, 1), "other words")
	undo()
	h := r.domain.Register()
	marked, err := x.mark(h, x.newest.Load(), 1)
	require.NoError(t, err)
	require.True(t, marked)
	undo = overwrite(t, s.fs, s.path(1), at, []byte{1, 2, 3})
	_, err = x.leave(h, x.newest.Load(), 1)
	require.ErrorIs(t, err, fault.ErrCorrupt)
	checkArray(t, r, x, s.model)
	undo()
	require.EqualValues(t, 1, leave(t, x, 1))
}

// FreeOrdinals finds none of a page that was written, wherever it is now, nor any that
// only a later image knows of.
func TestFreeOrdinalsOfPagesThatLeft(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	opened := s.image.HighWater()
	r.set(t, x, 2<<pageShift+9, s.model[2<<pageShift+9])
	r.set(t, x, 3<<pageShift, 0)
	r.set(t, x, 5<<piaShift+9, logWord(3))
	s.step(t, map[uint64]Word{5<<piaShift + 9: logWord(3)})
	require.NoError(t, x.Rebase(t.Context(), s.image))
	require.EqualValues(t, 3, leave(t, x, 2, 3, 5<<(piaShift-pageShift)))
	got := map[uint64]bool{}
	next, err := x.FreeOrdinals(0, 1<<30, func(ordinal uint64) { got[ordinal] = true })
	require.NoError(t, err)
	require.Equal(t, opened, next)
	for ordinal := uint64(1); ordinal < opened; ordinal++ {
		written := pageOf(ordinal) == 2 || pageOf(ordinal) == 3
		require.Equal(t, s.model[ordinal] == 0 && !written, got[ordinal], "ordinal %d", ordinal)
	}
}

// One array through many checkpoints: its pages leave, come back and change, against
// a model. Rows in memory, as the array has them, are addresses in the images.
func TestArrayThroughCheckpoints(t *testing.T) {
	rng := newRand(t)
	fs := vfs.NewMem()
	s := newSeries(t, fs, "/db")
	r := newRig(t)
	x := NewArray(r.domain, r.arena, testTable, nil)
	model := map[uint64]Word{}
	const space, pages = 140_000, 140_000 / PageSlots
	left := int64(0)
	for step := range 14 {
		writeRandomly(t, rng, r, x, model, space)
		changes := map[uint64]Word{}
		for ordinal, w := range model {
			if w.IsRef() { // frozen
				w = logWord(uint64(w) / 8)
				model[ordinal] = w
				r.set(t, x, ordinal, w)
			}
			if s.model[ordinal] != w {
				changes[ordinal] = w
			}
		}
		for ordinal := range s.model {
			if model[ordinal] == 0 {
				changes[ordinal] = 0
			}
		}
		s.step(t, changes)
		require.NoError(t, x.Rebase(t.Context(), s.image))
		require.Equal(t, len(s.image.Generations()), fs.Handles(), "files of older images are mapped")
		checkArray(t, r, x, model)
		var some []uint64
		for page := range uint64(pages + 1) {
			if rng.IntN(4) > 0 {
				some = append(some, page)
			}
		}
		left += leave(t, x, some...)
		if step%3 == 0 { // some words are read, some pages not
			for range 50 {
				ordinal := rng.Uint64N(space)
				require.Equal(t, model[ordinal], r.load(t, x, ordinal))
			}
		} else {
			checkArray(t, r, x, model)
		}
	}
	require.Greater(t, left, int64(pages))
	all := make([]uint64, pages+1)
	for page := range all {
		all[page] = uint64(page)
	}
	leave(t, x, all...)
	require.Zero(t, x.Bytes(), "all of it is in the image")
	require.EqualValues(t, 3*blockBytes, r.inUse(t))
	checkArray(t, r, x, model)
	require.NoError(t, x.Close())
	require.Zero(t, r.inUse(t))
	s.close(t)
	require.Zero(t, fs.Handles())
}

// An image that does not have what a page in a file has is refused, and changes
// nothing.
func TestRebaseRefusesOtherContent(t *testing.T) {
	fs := vfs.NewMem()
	s := pagedSeries(t, fs, "/db")
	r := newRig(t)
	for i, name := range []string{"page of a block", "without a block"} {
		t.Run(name, func(t *testing.T) {
			x := r.array(t, testTable, s.image)
			model, word := s.model, logWord(uint64(9000+i))
			if i == 0 {
				require.Equal(t, model[1], r.load(t, x, 1))
			}
			old := x.newest.Load()
			s.step(t, map[uint64]Word{PageSlots + 3: word}) // the array knows nothing of it
			handles := fs.Handles()
			require.ErrorIs(t, x.Rebase(t.Context(), s.image), fault.ErrCorrupt)
			require.Equal(t, handles, fs.Handles())
			require.Same(t, old, x.newest.Load())
			checkArray(t, r, x, model)
			r.set(t, x, PageSlots+3, word)
			require.NoError(t, x.Rebase(t.Context(), s.image), "now it does")
			checkArray(t, r, x, s.model)
			require.NoError(t, x.Close())
		})
	}
	x := r.array(t, testTable, nil)
	require.ErrorIs(t, x.Rebase(t.Context(), s.image), fault.ErrCorrupt, "an empty array")
}

// A block that was filled from a base that is no longer the newest one is not entered.
func TestBlockOfAnOlderBase(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	b := x.newest.Load()
	block, err := r.arena.AllocLasting(0, blockBytes)
	require.NoError(t, err)
	require.NoError(t, x.fillBlock(block, 0, b))
	s.step(t, map[uint64]Word{9: s.model[9]})
	require.NoError(t, x.Rebase(t.Context(), s.image))
	entered, err := x.enter(block, 0, b)
	require.NoError(t, err)
	require.Zero(t, entered)
	entered, err = x.install(block, 0)
	require.NoError(t, err)
	require.Equal(t, block, entered)
	checkArray(t, r, x, s.model)
}

// Files stay mapped for the readers of the moment; a Rebase that does not wait leaves
// that to the next one.
func TestRebaseKeepsFilesForReaders(t *testing.T) {
	fs := vfs.NewMem()
	s := pagedSeries(t, fs, "/db")
	r := newRig(t)
	x := r.array(t, testTable, s.image)
	require.Equal(t, s.model[PageSlots+3], r.load(t, x, PageSlots+3))
	r.handle.Pin()
	state, b := x.pageState(1)
	s.step(t, map[uint64]Word{9: s.model[9]}) // the same words in another file
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, x.Rebase(ctx, s.image), context.Canceled)
	w, err := b.load(state, 1, 3)
	require.NoError(t, err)
	require.Equal(t, s.model[PageSlots+3], w)
	now, _ := x.pageState(1)
	require.NotEqual(t, state, now)
	for _, ordinal := range []uint64{7, PageSlots + 3, 1<<piaShift + 7} {
		w, err := x.Load(ordinal)
		require.NoError(t, err)
		require.Equal(t, s.model[ordinal], w)
	}
	mapped := fs.Handles()
	r.handle.Unpin()
	require.NoError(t, x.Rebase(t.Context(), s.image))
	require.Less(t, fs.Handles(), mapped)
	checkArray(t, r, x, s.model)
}

// Writers and readers beside a checkpointer that lets all pages go all the time: no
// increment is lost.
func TestConcurrentLeave(t *testing.T) {
	const writers, slots, spread = 3, 1000, 190
	const hotSlots = slots / 8 // where most of the writes are, for a round
	rounds := 80
	if testing.Short() {
		rounds = 10
	}
	rng := newRand(t)
	s := newSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	x := NewArray(r.domain, r.arena, testTable, nil)
	var stop atomic.Bool
	var hot atomic.Int64
	var wg sync.WaitGroup
	halt := func() {
		stop.Store(true)
		wg.Wait()
	}
	defer halt()
	var counts [writers][slots]uint64
	for task := range writers {
		h := r.domain.Register()
		seed := rng.Uint64()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(task)))
			for !stop.Load() {
				slot, write := rng.IntN(slots), rng.IntN(4000) == 0
				if rng.IntN(2) == 0 {
					slot, write = (int(hot.Load())+rng.IntN(hotSlots))%slots, true
				}
				ordinal := uint64(slot) * spread
				h.Pin()
				w, err := x.Load(ordinal)
				if err == nil && write {
					next := w + 1
					if w == 0 {
						next = wordLog + 1
					}
					var swapped bool
					if swapped, err = x.CompareAndSwap(h.Shard(), ordinal, w, next); swapped {
						counts[task][slot]++
					}
				}
				h.Unpin()
				if err != nil {
					t.Errorf("ordinal %d: %v", ordinal, err)
					return
				}
				runtime.Gosched() // not only while pinned
			}
		})
	}
	var pages []uint64
	for page := range uint64(slots*spread/PageSlots + 1) {
		pages = append(pages, page)
	}
	left := int64(0)
	for round := 0; round < rounds || left == 0; round++ {
		image := map[uint64]Word{}
		require.NoError(t, x.Scan(0, func(ordinal uint64, w Word) bool { image[ordinal] = w; return true }))
		s.step(t, image)
		require.NoError(t, x.Rebase(t.Context(), s.image))
		for range 3 {
			hot.Store(rng.Int64N(slots))
			bytes, err := x.Leave(t.Context(), pages)
			require.NoError(t, err)
			left += bytes / pageBytes
		}
	}
	halt()
	for slot := range slots {
		n := Word(0)
		for task := range writers {
			n += Word(counts[task][slot])
		}
		require.Equal(t, n, r.load(t, x, uint64(slot)*spread)&^wordLog, "slot %d", slot)
	}
	t.Logf("%d times a page left", left)
	require.NoError(t, x.Close())
}

// At the memory limit pages leave all the same, and reads go on.
func TestLeaveAtTheMemoryLimit(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	r := newRigWith(t, arena.Config{Limit: arena.ChunkSize})
	x := r.array(t, testTable, s.image)
	r.set(t, x, 7, s.model[7])
	var blocks int
	for err := error(nil); err == nil; blocks++ {
		_, err = r.arena.AllocLasting(0, pageBytes)
	}
	s.step(t, map[uint64]Word{PageSlots: s.model[PageSlots]})
	require.NoError(t, x.Rebase(t.Context(), s.image))
	require.EqualValues(t, 1, leave(t, x, 0))
	r.inUse(t)
	checkArray(t, r, x, s.model)
	r.set(t, x, 7, logWord(1))
}

// What is empty after replay is found once, whatever becomes of its page, and nothing
// that comes free later.
func TestFreeOrdinalsAfterReplay(t *testing.T) {
	s := pagedSeries(t, vfs.NewMem(), "/db")
	for _, image := range []*Image{nil, s.image} {
		r := newRig(t)
		x := r.array(t, testTable, image)
		model := map[uint64]Word{}
		if image != nil {
			maps.Copy(model, s.model)
		}
		replay := map[uint64]Word{1<<pageShift + 3: 0, 2<<pageShift + 9: logWord(3), 3 << pageShift: 0, 7<<piaShift + 700: logWord(4)}
		for ordinal, w := range replay {
			r.set(t, x, ordinal, w)
			model[ordinal] = w
		}
		x.NoteFree()
		r.set(t, x, 2<<pageShift+9, 0)
		r.set(t, x, 7<<piaShift+700, 0)
		got := map[uint64]bool{}
		for from := uint64(1); from < x.HighWater(); {
			next, err := x.FreeOrdinals(from, 100, func(ordinal uint64) {
				require.False(t, got[ordinal], "ordinal %d twice", ordinal)
				require.Zero(t, model[ordinal], "ordinal %d", ordinal)
				got[ordinal] = true
				if len(got)%50 == 0 {
					r.set(t, x, ordinal, logWord(5)) // it is used at once
				}
			})
			require.NoError(t, err)
			from = next
		}
		for ordinal := range replay {
			for o := max(1, ordinal&^(PageSlots-1)); o < ordinal|(PageSlots-1)+1; o++ {
				require.Equal(t, model[o] == 0, got[o], "ordinal %d", o)
			}
		}
	}
}
