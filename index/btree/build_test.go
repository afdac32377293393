package btree

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

func sortedEntries(rnd *rand.Rand, n int, key func(*rand.Rand) []byte) []entry {
	m := new(model)
	for range n {
		m.insert(entry{string(key(rnd)), rowid.ID(rnd.IntN(50) + 1)})
	}
	return m.list
}

func TestBuild(t *testing.T) {
	for _, kind := range kinds {
		for _, keys := range keyMakers {
			t.Run(kind.name+"/"+keys.name, func(t *testing.T) {
				rnd := newRand(t)
				for _, n := range []int{0, 1, 2, 130, effort(1500)} {
					list := sortedEntries(rnd, n, keys.make)
					r := buildRig(t, kind.store, list, 0.5+rnd.Float64()/2)
					r.validate()
					requireSame(t, list, r.scan(index.Range{}))
					r.workOff(rnd, list, keys.make)
				}
			})
		}
	}
}

func buildRig(t testing.TB, store func(*arena.Arena) Store, list []entry, fill float64) *rig {
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	b, err := NewBuilder(Config{Arena: a, Store: store(a), Table: "t", Index: "i"}, fill)
	require.NoError(t, err)
	for _, e := range list {
		require.NoError(t, b.Add([]byte(e.key), e.row))
	}
	tree, err := b.Finish()
	require.NoError(t, err)
	r := &rig{Tree: tree, t: t, arena: a, domain: d, h: d.Register()}
	t.Cleanup(r.close)
	return r
}

// workOff checks that a built tree takes changes, down to the last entry.
func (r *rig) workOff(rnd *rand.Rand, list []entry, key func(*rand.Rand) []byte) {
	r.t.Helper()
	m := &model{list: slices.Clone(list)}
	for range effort(200) {
		e := entry{string(key(rnd)), rowid.ID(rnd.IntN(50) + 1)}
		require.NoError(r.t, r.insert([]byte(e.key), e.row))
		m.insert(e)
	}
	r.validate()
	for _, e := range shuffled(rnd, m.list) {
		require.True(r.t, r.remove([]byte(e.key), e.row))
	}
	r.validate()
	require.Equal(r.t, index.Stats{Bytes: NodeSize}, r.Stats())
}

func TestBuildOrder(t *testing.T) {
	a := arena.New(arena.Config{})
	b, err := NewBuilder(Config{Arena: a}, DefaultFill)
	require.NoError(t, err)
	require.NoError(t, b.Add([]byte("b"), 2))
	require.NoError(t, b.Add([]byte("b"), 2))
	require.ErrorIs(t, b.Add([]byte("b"), 1), index.ErrOrder)
	require.ErrorIs(t, b.Add([]byte("a"), 3), index.ErrOrder)
	tree, err := b.Finish()
	require.NoError(t, err)
	require.Equal(t, int64(1), tree.Stats().Entries)
	require.NoError(t, b.Abandon())
	require.NoError(t, tree.Close())
	require.Zero(t, a.Stats().InUse)
}

// TestBuildAbandoned stops after every so many entries, also for lack of
// memory, and expects all memory back.
func TestBuildAbandoned(t *testing.T) {
	rnd := newRand(t)
	for _, keys := range keyMakers {
		list := sortedEntries(rnd, effort(1000), keys.make)
		for n := 0; n < len(list); n += 1 + rnd.IntN(300) {
			a := arena.New(arena.Config{})
			b, err := NewBuilder(Config{Arena: a}, DefaultFill)
			require.NoError(t, err)
			for _, e := range list[:n] {
				require.NoError(t, b.Add([]byte(e.key), e.row))
			}
			require.NoError(t, b.Abandon())
			require.Zero(t, a.Stats().InUse)
		}
	}
}
