package chainindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// copyOf builds a tree of a snapshot.
func (r *rig) copyOf(s *Snapshot) *btree.Tree {
	b, err := btree.NewBuilder(TreeConfig(&r.spec), 1)
	require.NoError(r.t, err)
	require.NoError(r.t, s.Each(context.Background(), b.Add))
	tree, err := b.Finish()
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, tree.Close()) })
	return tree
}

func (r *rig) snapshot(x *Index) *Snapshot {
	s, err := x.Snapshot(context.Background())
	require.NoError(r.t, err)
	return s
}

// churner changes an index and a model at random and takes checkpoints.
type churner struct {
	*rig
	*session
	x *Index
	m *indextest.Model
}

func (c *churner) churn(rng *rand.Rand, steps int) {
	for range steps {
		e := indextest.Entry{Key: fmt.Sprint("key ", rng.IntN(200)), Row: row(1 + rng.IntN(3))}
		switch {
		case rng.IntN(60) == 0:
			c.checkpoint(c.x)
		case rng.IntN(60) == 0:
			capture, _ := c.begin(c.x)
			capture.Abandon()
		case rng.IntN(2) == 0:
			require.Equal(c.rig.t, c.m.Remove(e), c.remove(e.Key, int(e.Row.Ordinal())))
		case rng.IntN(2) == 0:
			require.NoError(c.rig.t, c.tryInsert(e.Key, int(e.Row.Ordinal()), collect{}))
			c.m.Insert(e)
		default:
			c.insert(e.Key, int(e.Row.Ordinal()))
			c.m.Insert(e)
		}
	}
}

// A tree that was built from a snapshot follows the index, with any changes
// and checkpoints in any phase.
func TestFollower(t *testing.T) {
	for seed := range uint64(scaled(40)) {
		r := newRigOn(t, vfs.NewMem(), "/")
		rng := rand.New(rand.NewPCG(seed, 5))
		x := r.create()
		if seed%2 == 0 {
			x.plan = lagging
		}
		c := &churner{r, r.session(x), x, &indextest.Model{}}
		phase := func() { c.churn(rng, rng.IntN(300)) }
		phase()
		s := r.snapshot(x)
		then := c.m.Clone()
		phase()
		tree := r.copyOf(s)
		r.session(tree).equals(then)
		phase()
		require.NoError(t, x.Follow(context.Background(), tree))
		require.False(t, x.Mirrored())
		phase()
		require.NoError(t, s.Replay(context.Background()))
		phase()
		require.True(t, x.Complete())
		s.Close()
		require.True(t, x.Mirrored())
		c.equals(c.m)
		r.session(tree).equals(c.m)
		phase()
		c.equals(c.m)
		r.session(tree).equals(c.m)
		require.EqualValues(t, c.m.Len(), tree.Stats().Entries)
		r.session(r.open(r.checkpoint(x))).equals(c.m)
	}
}

// The same with writers that do not wait.
func TestFollowerUnderLoad(t *testing.T) {
	for round := range scaled(40) {
		r := newRigOn(t, vfs.NewMem(), "/")
		x := r.create()
		var writers []*stressed
		var done atomic.Bool
		var fns []func() error
		for i := range 2 {
			w := &stressed{r.session(x), rand.New(rand.NewPCG(uint64(round), uint64(i))), row(i + 1), map[string]bool{}}
			for range 300 {
				require.NoError(t, w.step())
			}
			writers = append(writers, w)
			fns = append(fns, func() error {
				for !done.Load() {
					if err := w.step(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		var tree *btree.Tree
		fns = append(fns, func() error {
			defer done.Store(true)
			s := r.snapshot(x)
			defer s.Close()
			if round%2 == 0 {
				r.checkpoint(x)
			}
			tree = r.copyOf(s)
			if err := x.Follow(context.Background(), tree); err != nil {
				return err
			}
			if round%3 == 0 {
				r.checkpoint(x)
			}
			if err := s.Replay(context.Background()); err != nil {
				return err
			}
			x.Complete()
			return nil
		})
		parallel(t, fns...)
		require.True(t, x.Mirrored())
		got := r.session(x).scan(index.Range{}, 50)
		require.True(t, slices.Equal(got, r.session(tree).scan(index.Range{}, 50)))
		for _, w := range writers {
			require.NoError(t, w.scanAll(false))
		}
	}
}

// A complete follower refuses what its checker refuses, and the chain is as it
// was.
func TestFollowerRefuses(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x, s := r.aged("key", 1)
	snapshot := r.snapshot(x)
	tree := r.copyOf(snapshot)
	require.NoError(t, x.Follow(context.Background(), tree))
	require.True(t, x.Complete())
	snapshot.Close()
	refuse := checkFunc(func(rowid.ID) error { return errTaken })
	require.Equal(t, errTaken, s.tryInsert("key", 2, refuse))
	require.Zero(t, x.headEntries())
	require.Len(t, s.lookup("key"), 1)
	require.NoError(t, s.tryInsert("key", 1, refuse), "its own row does not count")
	s.insert("key", 3)
	require.Equal(t, errTaken, s.tryInsert("key", 3, refuse))
	require.Len(t, s.lookup("key"), 2, "a refused insert takes nothing away")
	require.Len(t, r.session(tree).lookup("key"), 2)
	require.True(t, s.remove("key", 1))
	require.Equal(t, errTaken, s.tryInsert("key", 1, refuse))
	require.EqualValues(t, 1, x.headTombs(), "the tombstone stays")
	require.Len(t, s.lookup("key"), 1)
}

// A follower that is not complete is dropped when memory runs out; a complete
// one makes the insertion fail, with nothing added.
func TestFollowerWithoutMemory(t *testing.T) {
	for _, complete := range []bool{false, true} {
		r := newLimitedRig(t, 4<<20)
		x := r.create()
		s := r.session(x)
		snapshot := r.snapshot(x)
		tree := r.copyOf(snapshot)
		require.NoError(t, x.Follow(context.Background(), tree))
		if complete {
			require.True(t, x.Complete())
		}
		snapshot.Close()
		rng := rand.New(rand.NewPCG(1, 1))
		m := &indextest.Model{}
		for i, refused := 0, 0; refused < 600 && x.follower.Load() != nil; i++ {
			if i == 1000 { // so that the two trees do not split at the same time
				r.checkpoint(x)
			}
			key := fmt.Sprint(rng.Uint64(), strings.Repeat(" of some length", 15))
			if err := s.tryInsert(key, 1, nil); err != nil {
				require.ErrorIs(t, err, fault.ErrMemoryLimit)
				require.Empty(t, s.lookup(key), "nothing is added")
				refused++
			} else if i%100 == 0 {
				m.Insert(indextest.Entry{Key: key, Row: row(1)})
			}
		}
		require.Equal(t, complete, x.Mirrored())
		require.Equal(t, complete, x.Complete())
		for _, e := range all(m) {
			require.Len(t, s.lookup(e.Key), 1)
			if complete {
				require.Len(t, r.session(tree).lookup(e.Key), 1)
			}
		}
		if complete {
			require.Equal(t, len(s.scan(index.Range{}, 100)), len(r.session(tree).scan(index.Range{}, 100)))
		}
	}
}

func TestOneSnapshotAtATime(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x, s := r.aged("key", 3)
	first := r.snapshot(x)
	require.EqualValues(t, 3, first.Len())
	_, err := x.Snapshot(context.Background())
	require.ErrorIs(t, err, ErrBusy)
	first.Close()
	for range maxFrozen {
		s.insert("key", 4+x.Layers())
		second := r.snapshot(x)
		second.Close()
	}
	s.insert("key", 20)
	_, err = x.Snapshot(context.Background())
	require.ErrorIs(t, err, ErrBusy, "the cap")
	r.checkpoint(x)
	r.snapshot(x).Close()
	require.Len(t, s.lookup("key"), 7)
}
