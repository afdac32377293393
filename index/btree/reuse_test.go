package btree

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
)

// stepping is a store whose epoch moves when the test says so.
type stepping struct {
	*NodeTable
	now uint64
}

func (s *stepping) Epoch() uint64 { return s.now }

// TestLeafReplacedOnTheWay: between the way down and the latch of the leaf the
// leaf is copied, and its old block becomes a copy of the neighbour. The block can
// be latched, the parent is as it was, but it is not the leaf.
func TestLeafReplacedOnTheWay(t *testing.T) {
	s := &stepping{}
	r := newRig(t, func(a *arena.Arena) Store { s.NodeTable = NewNodeTable(a); return s })
	key := func(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }
	for i := range uint64(200) {
		require.NoError(t, r.insert(key(10*i), 1))
	}
	require.True(t, r.remove(key(20), 1)) // so that there is room
	p := newProbe(key(0), 1)
	w := new(work)
	require.NoError(t, r.trace(w, &p))
	require.Len(t, w.path, 2)

	s.now++
	require.NoError(t, r.insert(key(1), 1))    // the left leaf moves to a new block
	require.NoError(t, r.insert(key(1991), 1)) // the right one to the left one's old block
	require.NoError(t, w.latchLeaf())
	require.NotEqual(t, idOf(w.path[1].word), w.leaves[0].id(), "the block is another node")
	require.Nil(t, r.tracedLeaf(w))
	r.put(r.h, w)
	r.validate()
}
