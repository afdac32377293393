package iacow

import (
	"context"
	"maps"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

func (r *rig) ids() map[btree.NodeID]bool {
	ids := map[btree.NodeID]bool{}
	for id := btree.NodeID(1); uint64(id) < r.x.store.next; id++ {
		if word, err := r.x.store.Entry(id); err == nil && word.Load() != 0 {
			ids[id] = true
		}
	}
	return ids
}

func (r *rig) fill(n uint64) {
	for i := range n {
		r.insert(pair{integer(i), rowid.Make(testTable, 1)})
	}
}

func (r *rig) empty() {
	for p := range r.model {
		r.remove(p)
	}
}

// TestIDsAreReusedAfterPublishing drops nodes and makes others: their ids differ
// until a checkpoint without the dropped ones has been published, however many
// are abandoned before, and the next one has begun.
func TestIDsAreReusedAfterPublishing(t *testing.T) {
	r := newRig(t)
	r.fill(5000)
	r.publish()
	used := r.ids()
	r.empty()
	gone := len(used) - len(r.ids())
	require.Greater(t, gone, 30)
	fresh := func() {
		r.fill(1000)
		for id := range r.ids() {
			require.False(t, used[id] && id > 1, "id %d is reused", id) // 1 is the root
		}
		r.empty()
	}
	fresh()
	r.begin().Abandon()
	fresh()
	c := r.begin()
	fresh()
	r.write(c)
	fresh()
	c.Abandon()
	r.letGo()
	fresh()
	c = r.begin()
	files := r.write(c)
	fresh()
	r.published(c, files, nil)
	fresh()
	next := r.x.store.next
	r.begin().Abandon()
	r.fill(1000)
	require.Equal(t, next, r.x.store.next, "no new id is needed")
	r.check()
	r.kept = r.kept[1:]
	r.publish()
	r.checkKept()
}

// TestIDsStayFew lets entries come and go for long: the node table does not grow.
func TestIDsStayFew(t *testing.T) {
	r := newRig(t)
	var after int
	for round := range effort(40) {
		r.fill(3000)
		r.empty()
		r.publish()
		if round == 5 {
			after = int(r.x.store.next)
		}
		if round%7 == 6 {
			r.reopen()
		}
	}
	if after > 0 {
		require.LessOrEqual(t, int(r.x.store.next), after*3/2)
	}
	require.Len(t, r.ids(), 1)
	r.check()
}

// TestBeginGivesUp lets contexts of BeginCheckpoint end while operations are
// under way; what those do is in the next checkpoint, whichever epoch they
// belong to.
func TestBeginGivesUp(t *testing.T) {
	r := newRig(t)
	r.fill(2000)
	r.publish()
	slow := r.spec.Domain.Register()
	for round := range uint64(effort(16)) {
		slow.Pin()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 1 + round%3 {
			r.number++
			_, err := r.x.BeginCheckpoint(ctx, r.number)
			require.ErrorIs(t, err, context.Canceled)
			r.change(30, 2000, keySpaces[0].make)
		}
		slow.Unpin()
		r.change(30, 2000, keySpaces[0].make)
		switch round % 3 {
		case 0:
			r.begin().Abandon()
		case 1:
			r.publish()
			r.checkKept()
		}
		r.check()
	}
	r.publish()
	r.checkKept()
}

// TestStragglers has operations that began before the end of an epoch and end
// after it, one at each place where the line may fall.
func TestStragglers(t *testing.T) {
	r := newRig(t)
	r.fill(500)
	r.publish()
	done := make(chan *capture, 1)
	for i := range uint64(effort(40)) {
		h := r.spec.Domain.Register()
		h.Pin()
		before := r.x.store.Epoch()
		go func() {
			r.number++
			c, err := r.x.BeginCheckpoint(context.Background(), r.number)
			if err != nil {
				t.Error(err)
			}
			done <- c.(*capture)
		}()
		for i%2 == 0 && r.x.store.Epoch() == before {
			runtime.Gosched()
		}
		if i%2 == 0 {
			time.Sleep(200 * time.Microsecond)
		}
		r.insertPinned(h, pair{integer(1_000_000 + i), rowid.Make(testTable, 1)})
		require.Empty(t, done, "the epoch is captured while an operation may belong to it")
		h.Unpin()
		c := <-done
		x := r.open(r.write(c))
		require.NoError(t, x.validate())
		require.NoError(t, x.Close())
		c.Published()
	}
	r.check()
}

func (r *rig) insertPinned(h *epoch.Handle, p pair) {
	require.NoError(r.t, r.x.Insert(h, []byte(p.key), p.row, nil))
	r.model[p] = true
}

// TestPagesDroppedDuringCapture removes long keys, after the end of an epoch and
// before its capture is written.
func TestPagesDroppedDuringCapture(t *testing.T) {
	long := keySpaces[3]
	r := newRig(t)
	r.change(100, 100, long.make)
	r.publish()
	r.reopen()
	r.change(3, 100, long.make)
	c := r.begin()
	model := maps.Clone(r.model)
	r.empty()
	r.published(c, r.write(c), model)
	r.checkKept()
	r.publish()
	r.checkKept()
	require.Len(t, r.ids(), 1)
}

// TestImageDroppedDuringCapture does to the store what the tree would do that
// drops a node which was never in memory.
func TestImageDroppedDuringCapture(t *testing.T) {
	r := newRig(t)
	r.fill(3000)
	r.publish()
	r.reopen()
	drop := func() {
		for id := range r.ids() {
			word, err := r.x.store.Entry(id)
			require.NoError(t, err)
			if e := entry(word.Load()); id != 1 && e.inFile() {
				require.True(t, word.CompareAndSwap(uint64(e), 0))
				r.x.store.Dropped(0, id, uint64(e), 1, r.x.store.Epoch())
				return
			}
		}
		require.Fail(t, "all nodes are in memory")
	}
	r.insert(pair{"some change", 1})
	c := r.begin()
	model := maps.Clone(r.model)
	drop()
	r.published(c, r.write(c), model)
	r.checkKept()
	nodes := c.image.nodes
	c = r.begin()
	r.write(c)
	require.Equal(t, nodes-1, c.image.nodes, "the next checkpoint is without it")
	c.Abandon()
}
