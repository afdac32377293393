package txn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/indirection"
)

// chainModel is a chain of versions in a slot and, beside it, the whole history
// that a snapshot could see.
type chainModel struct {
	e       *engine
	rng     *rand.Rand
	ordinal uint64
	begins  []uint64 // of the history, oldest first
	deleted bool     // by the last version
}

// TestTrimModel compares trimmed chains with a naive model: for random
// histories, snapshots and horizons, each trimmed several times while versions
// come, snapshots go and the horizon rises.
func TestTrimModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	e := newEngine(t)
	for range 2000 {
		c := chainModel{e: e, rng: rng}
		var err error
		c.ordinal, err = e.table.IDs.Alloc(0)
		require.NoError(t, err)
		c.live()
	}
	e.Epochs.Reclaim()
	e.Epochs.Reclaim()
	require.Zero(t, e.Epochs.Stats().Retired)
}

func (c *chainModel) live() {
	s := Snapshots{}
	for round, rounds := 0, 1+c.rng.IntN(4); round < rounds; round++ {
		for range c.rng.IntN(6) {
			c.grow(round == rounds-1)
		}
		if len(c.begins) == 0 {
			continue
		}
		newest := c.begins[len(c.begins)-1]
		s.registered = slices.DeleteFunc(s.registered, func(uint64) bool { return c.rng.IntN(3) == 0 })
		for range c.rng.IntN(4) { // a new snapshot is not below the last horizon
			s.registered = append(s.registered, s.horizon+c.rng.Uint64N(newest+3))
		}
		slices.Sort(s.registered)
		s.registered = slices.Compact(s.registered)
		s.horizon += c.rng.Uint64N(newest + 3)
		c.trim(&s)
	}
	c.trim(&Snapshots{horizon: ^uint64(0) >> 1})
	if c.deleted {
		require.Empty(c.e.t, c.e.chain(c.ordinal))
		return
	}
	require.LessOrEqual(c.e.t, len(c.e.chain(c.ordinal)), 1)
}

// grow adds a version, in the last round perhaps a tombstone.
func (c *chainModel) grow(last bool) {
	if c.deleted {
		return
	}
	begin := uint64(1)
	if n := len(c.begins); n > 0 {
		begin = c.begins[n-1] + 1 + c.rng.Uint64N(5)
	}
	var flags uint32
	if c.deleted = last && len(c.begins) > 0 && c.rng.IntN(4) == 0; c.deleted {
		flags = flagTombstone
	}
	e := c.e
	ref, err := e.Arena.Alloc(e.h.Shard(), headerBytes)
	require.NoError(e.t, err)
	head, err := e.table.Rows.Load(c.ordinal)
	require.NoError(e.t, err)
	initVersion(versionAt(e.Arena, ref), begin, head, 0, flags, nil)
	swapped, err := e.table.Rows.CompareAndSwap(e.h.Shard(), c.ordinal, head, indirection.FromRef(ref))
	require.NoError(e.t, err)
	require.True(e.t, swapped)
	c.begins = append(c.begins, begin)
}

// trim trims and compares.
func (c *chainModel) trim(s *Snapshots) {
	e := c.e
	e.h.Pin()
	kept, err := e.Trim(e.h, e.table, c.ordinal, s, nil)
	e.h.Unpin()
	require.NoError(e.t, err)
	want, holders := c.seen(s)
	what := fmt.Sprintf("history %v, deleted %v, snapshots %v, horizon %d", c.begins, c.deleted, s.registered, s.horizon)
	require.Equal(e.t, want, e.chain(c.ordinal), what)
	require.Equal(e.t, holders, kept, what)
}

// seen returns the versions that a snapshot of s or one at or above the horizon
// sees, newest first, and for those that only the former see the oldest one.
func (c *chainModel) seen(s *Snapshots) (begins, holders []uint64) {
	for i := len(c.begins) - 1; i >= 0; i-- {
		begin, end := c.begins[i], ^uint64(0)
		if i < len(c.begins)-1 {
			end = c.begins[i+1]
		}
		if end > s.horizon {
			begins = append(begins, begin)
			continue
		}
		at := slices.IndexFunc(s.registered, func(cts uint64) bool { return begin <= cts && cts < end })
		if at >= 0 {
			begins, holders = append(begins, begin), append(holders, s.registered[at])
		}
	}
	if c.deleted && len(begins) == 1 && begins[0] <= s.horizon {
		return nil, nil
	}
	return begins, holders
}

// TestTrimBetweenReaders is one history by hand, through transactions.
func TestTrimBetweenReaders(t *testing.T) {
	e := newEngine(t)
	write := func(name string) uint64 { return e.commit(func(tx *Tx) error { return e.put(tx, 1, name, 0) }) }
	first := write("a")
	old := e.begin(false)
	write("b")
	third := write("c")
	middle := e.begin(false)
	write("d")
	last := write("e")

	const ordinal = 1
	require.Equal(t, []uint64{third, first}, e.trim(ordinal), "each of them is its own snapshot")
	require.Equal(t, []uint64{last, third, first}, e.chain(ordinal))
	require.Equal(t, "a", e.name(old, 1))
	require.Equal(t, "c", e.name(middle, 1))

	require.NoError(t, middle.Rollback())
	require.Equal(t, []uint64{first}, e.trim(ordinal))
	require.Equal(t, []uint64{last, first}, e.chain(ordinal))
	require.Equal(t, "a", e.name(old, 1))

	deleted := e.commit(func(tx *Tx) error { return e.remove(tx, 1) })
	e.trim(ordinal)
	require.Equal(t, []uint64{deleted, first}, e.chain(ordinal), "seen under the tombstone")
	require.NoError(t, old.Rollback())
	require.Empty(t, e.trim(ordinal))
	require.Empty(t, e.chain(ordinal))
}

// TestTrimLeavesWritersTheirBase: nothing at or above the newest committed
// version is touched while a transaction stands on it.
func TestTrimLeavesWritersTheirBase(t *testing.T) {
	e := newEngine(t)
	e.commit(func(tx *Tx) error { return e.put(tx, 1, "a", 0) })
	base := e.commit(func(tx *Tx) error { return e.put(tx, 1, "b", 0) })
	writer := e.begin(true)
	require.NoError(t, e.put(writer, 1, "c", 0))
	e.trim(1)
	chain := e.chain(1)
	require.Len(t, chain, 2)
	require.Equal(t, base, chain[1])
	require.NoError(t, writer.Rollback())
	require.Equal(t, []uint64{base}, e.chain(1))
}

// TestWalkOverUnlinkedVersions: who stands on a version when it is taken out
// still finds its own, whatever is taken out below.
func TestWalkOverUnlinkedVersions(t *testing.T) {
	e := newEngine(t)
	write := func(name string) { e.commit(func(tx *Tx) error { return e.put(tx, 1, name, 0) }) }
	write("a")
	old := e.begin(false)
	for _, name := range []string{"b", "c", "d", "e"} {
		write(name)
	}
	s := old.s
	s.h.Pin()
	head, err := e.table.Rows.Load(1)
	require.NoError(t, err)
	standing := versionAt(e.Arena, head.Ref()).olderWord() // d
	e.trim(1)
	for range 4 {
		e.Epochs.Reclaim()
	}
	require.Len(t, e.chain(1), 2)
	seen := s.visible(standing)
	values, err := e.table.Layout.DecodeRow(versionAt(e.Arena, seen.Ref()).payload())
	require.NoError(t, err)
	require.Equal(t, "a", values[1])
	s.h.Unpin()
}

// TestKeyUse: what a chain says about a key that came and went.
func TestKeyUse(t *testing.T) {
	e := newEngine(t)
	write := func(group int64) uint64 { return e.commit(func(tx *Tx) error { return e.put(tx, 1, "a", group) }) }
	use := func(group int64) KeyUse {
		e.h.Pin()
		defer e.h.Unpin()
		u, err := e.KeyUse(e.table, 1, byGroup, e.table.Layout.AppendKey(nil, byGroup, e.row(1, "a", group)))
		require.NoError(t, err)
		return u
	}
	first := write(1)
	second := write(2)
	require.Equal(t, KeyUse{Held: true, From: first, To: second}, use(1))
	require.Equal(t, KeyUse{Held: true, From: second, To: uncommitted}, use(2))
	require.Equal(t, KeyUse{}, use(3))
	writer := e.begin(true)
	require.NoError(t, e.put(writer, 1, "a", 3))
	inFlight := use(2)
	require.Greater(t, inFlight.To, uncommitted)
	require.False(t, inFlight.replaced(), "its commit will report it")
	u1, u3 := use(1), use(3)
	require.True(t, u1.replaced())
	require.True(t, u3.Held)
	require.NoError(t, writer.Rollback())
}

// TestAbortHandsOverOldKeys: an abort takes away a version on whose account the
// collector may have dropped the suspect of an older one.
func TestAbortHandsOverOldKeys(t *testing.T) {
	e := newEngine(t)
	e.commit(func(tx *Tx) error { return e.put(tx, 1, "old", 0) })
	reader := e.begin(false)
	e.commit(func(tx *Tx) error { return e.put(tx, 1, "new", 0) })
	e.queued() // the suspect of "old" among it
	writer := e.begin(true)
	require.NoError(t, e.put(writer, 1, "old", 0))
	require.NoError(t, writer.Rollback())
	queued := e.queued()
	require.Len(t, queued, 1)
	require.Equal(t, GarbageSuspect, queued[0].Kind)
	require.Equal(t, uint8(byName), queued[0].Index)
	require.NoError(t, reader.Rollback())

	writer = e.begin(true)
	require.NoError(t, e.put(writer, 1, "other", 0))
	require.NoError(t, writer.Rollback())
	require.Empty(t, e.queued(), "nobody else has that key: gone at once")
}
