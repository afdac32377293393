package chainindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

func TestCheckpointOfNothing(t *testing.T) {
	r := newRig(t)
	x := r.create()
	files := r.checkpoint(x)
	require.Len(t, files, 1, "an empty index has a file to be opened from")
	require.Empty(t, r.session(r.open(files)).scan(index.Range{}, 10))

	s := r.session(x)
	s.insert("key", 1)
	files = r.checkpoint(x)
	require.Len(t, files, 1)
	again := r.checkpoint(x)
	require.Equal(t, files, again, "nothing has changed, nothing is written")
	require.True(t, s.remove("key", 1))
	s.insert("other", 1)
	require.True(t, s.remove("other", 1))
	files = r.checkpoint(x)
	require.Empty(t, r.session(r.open(files)).scan(index.Range{}, 10))
}

// Entries that come and go while a capture is open are not the capture's.
func TestChangesDuringCapture(t *testing.T) {
	r := newRig(t)
	x, s := r.aged("key", 3)
	s.insert("key", 4)
	c, create := r.begin(x)
	s.insert("key", 5)
	require.True(t, s.remove("key", 4))
	require.True(t, s.remove("key", 1))
	files, err := c.Write(context.Background(), create)
	require.NoError(t, err)
	require.True(t, s.remove("key", 2))
	c.Published()
	require.Len(t, s.lookup("key"), 2)
	require.Len(t, r.session(r.open(files)).lookup("key"), 4)
	require.Len(t, r.session(r.open(r.checkpoint(x))).lookup("key"), 2)
}

func TestCancelledCheckpoint(t *testing.T) {
	r := newRig(t)
	x, s := r.aged("key", 3)
	s.insert("key", 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()

	// An operation that never ends holds the line up, until the context does.
	h := r.domain.Register()
	h.Pin()
	_, err := x.BeginCheckpoint(ctx, 50)
	require.ErrorIs(t, err, context.Canceled)
	h.Unpin()
	require.Len(t, s.lookup("key"), 4)

	c, create := r.begin(x)
	_, err = c.Write(ctx, create)
	require.ErrorIs(t, err, context.Canceled)
	c.Abandon()
	require.Len(t, r.session(r.open(r.checkpoint(x))).lookup("key"), 4)
}

// Every file operation of a checkpoint fails once. The checkpoint says so, the
// index goes on, and the next checkpoint has everything.
func TestEveryFileOperationFails(t *testing.T) {
	failed := 0
	for nth := 1; ; nth++ {
		mem := vfs.NewMem()
		counted := errorfs.Count(errorfs.If(errorfs.All(errorfs.PathGlob("/3.chain"), errorfs.OnNth(nth)), syscall.EIO))
		during := errorfs.Toggle(counted)
		r := newRigOn(t, errorfs.Wrap(mem, during), "/")
		x, m := r.create(), &indextest.Model{}
		s := r.session(x)
		for n := range 3 {
			for i := range 300 {
				e := indextest.Entry{Key: fmt.Sprint("key ", i*(n+1)), Row: row(1)}
				m.Insert(e)
				s.insert(e.Key, 1)
			}
			if n < 2 {
				r.checkpoint(x)
			}
		}
		c, create := r.begin(x)
		during.On()
		files, err := c.Write(context.Background(), create)
		during.Off()
		if err == nil {
			require.Zero(t, counted.Injected(), "operation %d failed and nobody noticed", nth)
			c.Published()
			require.Greater(t, failed, 8)
			r.session(r.open(files)).equals(m)
			return
		}
		failed++
		require.ErrorIs(t, err, errorfs.ErrInjected)
		c.Abandon()
		s.equals(m)
		r.session(r.open(r.checkpoint(x))).equals(m)
	}
}

// The tree of a published checkpoint gives its memory back, and so does a file
// that was merged.
func TestMemoryIsGivenBack(t *testing.T) {
	r := newRig(t)
	x := r.create()
	s := r.session(x)
	base := r.arena.Stats().InUse
	n := scaled(20_000)
	for round := range 5 {
		for i := range n {
			s.insert(fmt.Sprintf("%d key %d", round, i), 1)
		}
		require.Greater(t, r.arena.Stats().InUse-base, int64(16*n))
		require.Greater(t, x.Stats().Bytes, int64(16*n))
		r.checkpoint(x)
		r.domain.Reclaim()
		require.Less(t, r.arena.Stats().InUse-base, int64(4*n))
		require.Less(t, x.Stats().Bytes, int64(4*n))
		require.Greater(t, x.Stats().Mapped, int64((round+1)*16*n))
		require.EqualValues(t, (round+1)*n, x.Stats().Entries)
	}
}

// A reader that is pinned can go on in the layers that a checkpoint replaces,
// in memory and in files.
func TestReaderGoesOnInReplacedLayers(t *testing.T) {
	r := newRig(t)
	x, s := r.aged("key", 3)
	s.insert("key", 4)
	x.plan = func(int64, []*layer) int { return 1 }
	capture, create := r.begin(x)
	_, err := capture.Write(context.Background(), create)
	require.NoError(t, err)
	h := r.domain.Register()
	h.Pin()
	old := x.chain.Load()
	capture.Published()
	for range 5 {
		r.domain.Reclaim()
	}
	require.Len(t, x.chain.Load().layers, 2)
	places, err := old.collect(h, []byte("key"), nil, 0, len(old.layers))
	require.NoError(t, err)
	require.Len(t, places, 4)
	h.Unpin()
	r.domain.Reclaim()
	require.Nil(t, old.files()[0].file.mapping.Bytes(), "unmapped")
	require.Len(t, s.lookup("key"), 4)
}

// The same entries give the same bytes, whatever was in memory before.
func TestFilesAreDeterministic(t *testing.T) {
	write := func(seed uint64) []byte {
		r := newRigOn(t, vfs.NewMem(), "/")
		rng := rand.New(rand.NewPCG(seed, 0))
		spoil(r.arena, rng)
		x := r.create()
		s := r.session(x)
		for _, i := range rng.Perm(2000) {
			s.insert(fmt.Sprint("key ", i), 1)
		}
		return r.read(r.checkpoint(x)[0].Name)
	}
	require.Equal(t, write(1), write(2))
}

// spoil leaves garbage in the blocks of the size of nodes that are free.
func spoil(a *arena.Arena, rng *rand.Rand) {
	var refs []arena.Ref
	for range scaled(500) {
		ref, err := a.Alloc(0, nodeSize)
		if err != nil {
			break
		}
		for i := range a.Bytes(ref, nodeSize) {
			a.Bytes(ref, nodeSize)[i] = byte(rng.Uint32())
		}
		refs = append(refs, ref)
	}
	for _, ref := range refs {
		a.Free(0, ref, nodeSize)
	}
}
