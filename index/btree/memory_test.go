package btree

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// meagre is a store that has no memory from some allocation on.
type meagre struct {
	restless
	left atomic.Int64
}

func (s *meagre) NewBlock(shard uint32) (arena.Ref, error) {
	if s.left.Add(-1) < 0 {
		return 0, fmt.Errorf("no block: %w", fault.ErrMemoryLimit)
	}
	return s.restless.NewBlock(shard)
}

func (s *meagre) NewID(shard uint32) (NodeID, error) {
	if s.left.Add(-1) < 0 {
		return 0, fmt.Errorf("no id: %w", fault.ErrMemoryLimit)
	}
	return s.restless.NewID(shard)
}

// TestLackOfMemory has every operation meet the lack of memory at each of its
// allocations, until it gets by: what fails changes nothing.
func TestLackOfMemory(t *testing.T) {
	for _, keys := range keyMakers {
		t.Run(keys.name, func(t *testing.T) {
			rnd := newRand(t)
			store := &meagre{}
			r := newRig(t, func(a *arena.Arena) Store {
				store.NodeTable = NewNodeTable(a)
				store.left.Store(1 << 40)
				return store
			})
			m := new(model)
			for range effort(1200) {
				e := entry{string(keys.make(rnd)), rowid.ID(rnd.IntN(50) + 1)}
				for allocations := int64(0); ; allocations++ {
					store.left.Store(allocations)
					err := r.insert([]byte(e.key), e.row)
					if err == nil {
						break
					}
					require.ErrorIs(t, err, fault.ErrMemoryLimit)
				}
				m.insert(e)
				r.starve(store, m, rnd)
			}
			r.validate()
			requireSame(t, m.list, r.scan(index.Range{}))
		})
	}
}

// starve now and then removes an entry with too little memory to do it well.
func (r *rig) starve(store *meagre, m *model, rnd *rand.Rand) {
	if rnd.IntN(3) > 0 {
		return
	}
	e := m.list[rnd.IntN(len(m.list))]
	for allocations := int64(0); ; allocations++ {
		store.left.Store(allocations)
		r.h.Pin()
		removed, err := r.Remove(r.h, []byte(e.key), e.row, always)
		r.h.Unpin()
		if removed {
			require.NoError(r.t, err)
			m.remove(e)
			return
		}
		require.ErrorIs(r.t, err, fault.ErrMemoryLimit)
	}
}

// TestMemoryLimit fills an arena to its limit, and empties the tree again.
func TestMemoryLimit(t *testing.T) {
	a := arena.New(arena.Config{Limit: 4 << 20})
	tree, err := New(Config{Arena: a})
	require.NoError(t, err)
	r := &rig{Tree: tree, t: t, arena: a, domain: epoch.NewDomain(a)}
	r.h = r.domain.Register()
	t.Cleanup(r.close)
	n := 0
	for err == nil {
		if err = r.insert(fmt.Appendf(nil, "key %d with so much behind it to fill memory%0200d", n, n), 1); err == nil {
			n++
		}
	}
	require.ErrorIs(t, err, fault.ErrMemoryLimit)
	require.Equal(t, int64(n), r.Stats().Entries)
	r.validate()
	for i := range n {
		require.True(t, r.remove(fmt.Appendf(nil, "key %d with so much behind it to fill memory%0200d", i, i), 1))
	}
	require.Equal(t, index.Stats{Bytes: NodeSize}, r.Stats())
}

func TestKeyTooLarge(t *testing.T) {
	r := newRig(t, kinds[0].store)
	require.NoError(t, r.insert(make([]byte, MaxKey), 1))
	err := r.insert(make([]byte, MaxKey+1), 1)
	require.ErrorIs(t, err, fault.ErrKeyTooLarge)
	require.False(t, r.remove(make([]byte, MaxKey+1), 1))
	require.True(t, r.remove(make([]byte, MaxKey), 1))
}

// TestHintsAreMended moves every node and expects that reading puts the hints
// right.
func TestHintsAreMended(t *testing.T) {
	r := newRig(t, kinds[2].store)
	for i := range 5000 {
		require.NoError(t, r.insert(fmt.Appendf(nil, "%05d", i), 1))
	}
	require.NotZero(t, r.staleHints(t))
	requireSame(t, r.scan(index.Range{}), r.scan(index.Range{}))
	for i := range 5000 {
		r.h.Pin()
		rows, err := r.Lookup(r.h, fmt.Appendf(nil, "%05d", i), nil)
		r.h.Unpin()
		require.NoError(t, err)
		require.Len(t, rows, 1)
	}
	require.Zero(t, r.staleHints(t))
}

// staleHints counts child words below the root that do not lead to their node.
func (r *rig) staleHints(t *testing.T) (stale int) {
	var walk func(g guard)
	walk = func(g guard) {
		m := g.meta()
		for i := 0; m.level() > 0 && i <= m.count(); i++ {
			child, err := r.enter(g.child(m, i))
			require.NoError(t, err)
			if child.word != g.child(m, i) {
				stale++
			}
			walk(child)
		}
	}
	root, err := r.enterRoot()
	require.NoError(t, err)
	walk(root)
	return stale
}
