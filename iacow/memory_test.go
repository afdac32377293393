package iacow

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// TestMemory compares the memory of an index with that of the plain tree: after a
// load, while checkpoints are taken between changes, and while one is open.
func TestMemory(t *testing.T) {
	const entries = 40_000
	r := newRig(t)
	a := arena.New(arena.Config{})
	defer func() { require.NoError(t, a.Close()) }()
	d := epoch.NewDomain(a)
	plain, err := btree.New(btree.Config{Arena: a})
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Close()); d.Close() }()
	h := d.Register()
	change := func(key string, row rowid.ID) {
		p := pair{key, row}
		h.Pin()
		defer h.Unpin()
		if r.model[p] {
			r.remove(p)
			_, err = plain.Remove(h, []byte(key), row, func() bool { return true })
		} else {
			r.insert(p)
			err = plain.Insert(h, []byte(key), row, nil)
		}
		require.NoError(t, err)
	}
	ratio := func() float64 { return float64(r.x.Stats().Bytes) / float64(plain.Stats().Bytes) }
	for i := range uint64(entries) {
		change(integer(i*0x9e3779b97f4a7c15), 1)
	}
	require.Less(t, ratio(), 1.03)
	for range 30 {
		r.publish()
		c := r.begin()
		for range entries / 100 {
			change(integer(r.rnd.Uint64N(entries)*0x9e3779b97f4a7c15), 2)
		}
		files := r.write(c)
		for range entries / 20 {
			change(integer(r.rnd.Uint64N(entries)*0x9e3779b97f4a7c15), 2)
		}
		r.published(c, files, nil)
		require.Less(t, ratio(), 1.1)
	}
	r.reopen2()
	require.Less(t, ratio(), 0.03, "nothing is in memory yet")
}

// reopen2 takes a checkpoint and goes on from it.
func (r *rig) reopen2() {
	r.publish()
	r.reopen()
}

// TestGoHeap: the Go heap does not grow with the entries, of an index in memory
// and of an open one.
func TestGoHeap(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the arena takes its chunks from the Go heap")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	r := newRig(t)
	r.model = nil
	insert := func(from, to uint64) {
		for i := from; i < to; i++ {
			r.h.Pin()
			require.NoError(t, r.x.Insert(r.h, []byte(integer(i*0x9e3779b97f4a7c15)), 1, nil))
			r.h.Unpin()
		}
	}
	insert(0, 10_000)
	before := heap()
	insert(10_000, 300_000)
	require.Less(t, heap(), before+before/4+200<<10)
}

// TestReadingDoesNotAllocate: neither images nor blocks do.
func TestReadingDoesNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checks allocate")
	}
	r := newRig(t)
	r.fill(3000)
	r.publish()
	r.reopen()
	key, rows := []byte(integer(1234)), make([]rowid.ID, 0, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.h.Pin()
		rows, _ = r.x.Lookup(r.h, key, rows[:0])
		r.h.Unpin()
	}))
	require.Len(t, rows, 1)
}

// TestMemoryLimit: at the limit of memory an index opened from files is read as
// before, and changes fail with nothing changed.
func TestMemoryLimit(t *testing.T) {
	r := newRig(t)
	r.fill(60_000)
	r.publish()
	require.NoError(t, r.x.Close())
	full := bareRig(t, r.fs)
	full.model = r.model
	full.spec.Arena = arena.New(arena.Config{Limit: 1})
	defer func() { require.NoError(t, full.spec.Arena.Close()) }()
	r.x = nil
	full.x = full.open(r.kept[0].files)
	full.h.Pin()
	err := full.x.Insert(full.h, []byte("new"), 1, nil)
	full.h.Unpin()
	require.Error(t, err)
	full.equals(full.x, r.model)
	require.NoError(t, full.x.Close())
	full.x = nil
}
