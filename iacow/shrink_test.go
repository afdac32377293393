package iacow

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

var shrinkRounds = flag.Int("shrink.rounds", 4, "checkpoints of TestShrinkUnderLoad")

// blocksInUse counts the nodes in memory.
func (r *rig) blocksInUse() int64 { return r.x.store.held.Load() - r.x.store.unused() }

// TestShrinkGivesLeavesBack: what the files have leaves memory, and comes back into
// it only where it is changed.
func TestShrinkGivesLeavesBack(t *testing.T) {
	for _, keys := range keySpaces {
		t.Run(keys.name, func(t *testing.T) {
			r := newRig(t)
			r.change(6*keys.wanted, 4*keys.wanted, keys.make)
			full := r.blocksInUse()
			require.NoError(t, r.x.Shrink(t.Context(), true))
			require.Equal(t, full, r.blocksInUse(), "nothing is in files")
			r.publish()
			require.NoError(t, r.x.Shrink(t.Context(), true))
			require.Less(t, r.blocksInUse(), full/16+4)
			require.Zero(t, r.x.store.unused())
			require.Less(t, r.spec.Arena.Stats().InUse, full*blockBytes/16+10*int64(pageMemory)+64<<10)
			r.check()
			require.Less(t, r.blocksInUse(), full/16+4, "read, not changed")
			before := r.blocksInUse()
			r.change(1, 4*keys.wanted, keys.make)
			if keys.name != "long keys" { // a node that splits writes the pages of its long keys again
				require.Less(t, r.blocksInUse(), before+20)
			}
			r.check()
			r.publish()
			r.checkKept()
		})
	}
}

// TestShrinkKeepsWhatChanged: nodes that differ from the last published checkpoint
// stay, whatever became of later ones.
func TestShrinkKeepsWhatChanged(t *testing.T) {
	r := newRig(t)
	keys := keySpaces[0]
	r.change(4*keys.wanted, 4*keys.wanted, keys.make)
	r.publish()
	for range 5 {
		r.change(keys.wanted/10, 4*keys.wanted, keys.make)
		c := r.begin()
		r.change(keys.wanted/10, 4*keys.wanted, keys.make)
		r.write(c)
		c.Abandon()
		r.letGo()
		require.NoError(t, r.x.Shrink(t.Context(), true))
		r.check()
	}
	r.publish()
	r.checkKept()
	r.check()
}

// TestShrinkMeetsDamage: a damaged page of the node table in a file is an error, and
// the nodes that it should have told about stay.
func TestShrinkMeetsDamage(t *testing.T) {
	r := newRig(t)
	r.fill(5000)
	r.publish()
	im := r.x.store.lastPublished()
	ref, err := im.ref(0)
	require.NoError(t, err)
	word := im.files[ref.place].data[int(ref.block)*blockBytes+8:]
	before := r.blocksInUse()
	word[0]++
	err = r.x.Shrink(t.Context(), true)
	require.True(t, typed(err), "%v", err)
	require.Equal(t, before, r.blocksInUse())
	r.check()
	word[0]--
	require.NoError(t, r.x.Shrink(t.Context(), true))
	require.Less(t, r.blocksInUse(), before/10)
	r.check()
}

// TestShrinkGivesUp: with a context that ends nothing is lost, and the next call does
// the work.
func TestShrinkGivesUp(t *testing.T) {
	r := newRig(t)
	r.fill(5000)
	r.publish()
	before := r.blocksInUse()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	reader := r.spec.Domain.Register()
	reader.Pin()
	require.ErrorIs(t, r.x.Shrink(ended, true), context.Canceled)
	reader.Unpin()
	r.check()
	require.NoError(t, r.x.Shrink(t.Context(), true))
	require.Less(t, r.blocksInUse(), before/10)
	reader.Pin()
	for p := range r.model {
		if r.remove(p); len(r.model) < 1000 {
			break
		}
	}
	require.ErrorIs(t, r.x.Shrink(ended, false), context.Canceled)
	reader.Unpin()
	held := r.x.store.held.Load()
	require.Greater(t, r.x.store.unused(), held/sparePart)
	require.NoError(t, r.x.Shrink(t.Context(), false))
	require.LessOrEqual(t, r.x.store.unused(), held/sparePart)
	r.check()
}

// TestDeletedIndexLeavesNoMemory: blocks that no node is in go back.
func TestDeletedIndexLeavesNoMemory(t *testing.T) {
	r := newRig(t)
	for i := range uint64(20_000) {
		r.insert(pair{integer(i * 0x9e3779b97f4a7c15), rowid.Make(testTable, i+1)})
	}
	r.publish()
	full := r.spec.Arena.Stats()
	for p := range r.model {
		r.remove(p)
	}
	for range 2 {
		r.publish()
		require.NoError(t, r.x.Shrink(t.Context(), false))
	}
	r.check()
	r.spec.Arena.Trim()
	st := r.spec.Arena.Stats()
	require.Less(t, st.InUse, full.InUse/20)
	require.Less(t, st.Reserved, full.Reserved-full.InUse*8/10)
}

// TestShrinkUnderLoad shrinks all the time while writers and readers work in two
// indexes that trade blocks through one arena. Every reader knows what it must find.
func TestShrinkUnderLoad(t *testing.T) {
	for _, key := range []struct {
		name string
		of   func(uint64) []byte
		n    uint64
	}{
		{"short", func(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15) }, 4000},
		{"long", func(i uint64) []byte { return fmt.Appendf(nil, "%0*d", 380+i%900, i*7919%1_000_003) }, 150},
	} {
		t.Run(key.name, func(t *testing.T) { shrinkUnderLoad(t, key.of, key.n) })
	}
}

// beside makes a second index in the same arena.
func (r *rig) beside() *rig {
	b := *r
	b.rnd, b.model, b.fs = rand.New(rand.NewPCG(r.rnd.Uint64(), 0)), map[pair]bool{}, vfs.NewMem()
	b.spec.Number++
	b.spec.FS = b.fs
	require.NoError(r.t, b.fs.MkdirAll("/db"))
	ix, err := Strategy{}.Create(b.spec)
	require.NoError(r.t, err)
	b.x = ix.(*Index)
	return &b
}

// TestBlocksOfOthers lets an index take the blocks that another one has given back,
// by chance for nodes with the same ids, while hints of that one still lead there.
func TestBlocksOfOthers(t *testing.T) {
	for range 60 {
		a := newRig(t)
		b := a.beside()
		n := 100 + a.rnd.Uint64N(1500)
		for i := range n {
			a.insert(pair{integer(i * 0x9e3779b97f4a7c15), rowid.Make(testTable, i+1)})
		}
		a.publish()
		require.NoError(t, a.x.Shrink(t.Context(), true))
		for i := range n {
			b.insert(pair{integer(i * 0x9e3779b97f4a7c15), rowid.Make(testTable, i+10_001)})
		}
		for p := range a.model {
			a.h.Pin()
			rows, err := a.x.Lookup(a.h, []byte(p.key), nil)
			a.h.Unpin()
			require.NoError(t, err)
			require.Equal(t, []rowid.ID{p.row}, rows)
		}
		a.check()
		b.check()
		require.NoError(t, b.x.Close())
	}
}

func shrinkUnderLoad(t *testing.T, key func(uint64) []byte, keys uint64) {
	a := newRig(t)
	b := a.beside()
	defer func() { require.NoError(t, b.x.Close()) }()
	rigs := []*rig{a, b}
	for _, r := range rigs {
		r.shrink = true
		r.spec.FS = vfs.NoMap(r.fs)
		r.x.spec.FS = r.spec.FS
		for i := range keys {
			r.insert(pair{string(key(2 * i)), rowid.Make(testTable, i+1)}) // these stay
		}
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for g, r := range rigs {
		wg.Go(func() { r.churn(key, keys, uint64(g), &stop) })
		wg.Go(func() { r.look(key, keys, uint64(g), &stop) })
	}
	for range *shrinkRounds {
		for _, r := range rigs {
			c := r.begin()
			files := r.write(c)
			r.published(c, files, nil)
		}
	}
	stop.Store(true)
	wg.Wait()
	for _, r := range rigs {
		require.NoError(t, r.x.validate())
	}
}

// churn inserts and removes odd keys.
func (r *rig) churn(key func(uint64) []byte, keys, seed uint64, stop *atomic.Bool) {
	rnd, h, present := rand.New(rand.NewPCG(seed, 1)), r.spec.Domain.Register(), map[uint64]bool{}
	for !stop.Load() {
		i := rnd.Uint64N(keys)
		h.Pin()
		var err error
		if present[i] {
			_, err = r.x.Remove(h, key(2*i+1), rowid.Make(testTable, i+1), func() bool { return true })
		} else {
			err = r.x.Insert(h, key(2*i+1), rowid.Make(testTable, i+1), nil)
		}
		h.Unpin()
		if err != nil {
			r.t.Error(err)
			return
		}
		present[i] = !present[i]
	}
}

// look reads even keys, one by one and together, and scans from them.
func (r *rig) look(key func(uint64) []byte, keys, seed uint64, stop *atomic.Bool) {
	rnd, h := rand.New(rand.NewPCG(seed, 2)), r.spec.Domain.Register()
	for !stop.Load() {
		var wanted [][]byte
		var rows []rowid.ID
		for range 1 + rnd.IntN(20) {
			i := rnd.Uint64N(keys)
			wanted, rows = append(wanted, key(2*i)), append(rows, rowid.Make(testTable, i+1))
		}
		if err := r.lookOnce(h, wanted, rows); err != nil {
			r.t.Error(err)
			return
		}
	}
}

// lookOnce finds each key's row by a lookup, by a batch, and by a scan.
func (r *rig) lookOnce(h *epoch.Handle, keys [][]byte, rows []rowid.ID) error {
	h.Pin()
	defer h.Unpin()
	together, ends, err := r.x.LookupBatch(h, keys, nil, nil)
	if err != nil {
		return err
	}
	if len(ends) != len(keys) || !slices.Equal(together, rows) {
		return fmt.Errorf("%d rows for %d keys, or others: %v, not %v", len(together), len(keys), together, rows)
	}
	got, err := r.x.Lookup(h, keys[0], nil)
	if err != nil || !slices.Equal(got, rows[:1]) {
		return fmt.Errorf("rows of a key are %v, not %v: %w", got, rows[:1], err)
	}
	var c index.Cursor
	var b index.Batch
	rng := index.Range{Lo: keys[0], Reverse: len(keys)%2 == 0}
	if rng.Reverse {
		rng = index.Range{Hi: append(keys[0], 0), Reverse: true}
	}
	if _, err := r.x.Scan(h, rng, &c, &b); err != nil {
		return err
	}
	if b.Len() == 0 || !bytes.Equal(b.Key(0), keys[0][:len(b.Key(0))]) || b.Row(0) != rows[0] {
		return fmt.Errorf("a scan from a key does not begin with it")
	}
	return nil
}
