package indirection

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// rig is an arena with its domain and one pinned handle.
type rig struct {
	arena  *arena.Arena
	domain *epoch.Domain
	handle *epoch.Handle
}

func newRig(t testing.TB) *rig { return newRigWith(t, arena.Config{}) }

func newRigWith(t testing.TB, c arena.Config) *rig {
	a := arena.New(c)
	d := epoch.NewDomain(a)
	r := &rig{arena: a, domain: d, handle: d.Register()}
	t.Cleanup(func() {
		d.Close()
		require.NoError(t, a.Close())
	})
	return r
}

func (r *rig) array(t testing.TB, table rowid.Table, base *Image) *Array {
	x := NewArray(r.domain, r.arena, table, base)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

// load reads a word within its own pin.
func (r *rig) load(t testing.TB, x *Array, ordinal uint64) Word {
	t.Helper()
	r.handle.Pin()
	defer r.handle.Unpin()
	w, err := x.Load(ordinal)
	require.NoError(t, err)
	return w
}

// logWord is the n-th of a series of log addresses.
func logWord(n uint64) Word {
	return FromAddress(logstream.MakeAddress(0, logstream.Position(n*64), 64))
}

func TestWord(t *testing.T) {
	address := logstream.MakeAddress(3, 4096, 100)
	w := FromAddress(address)
	require.True(t, w.IsLog())
	require.False(t, w.IsRef())
	require.Equal(t, address, w.Address())
	require.Equal(t, address.String(), w.String())

	w = FromRef(0x1000)
	require.False(t, w.IsLog())
	require.True(t, w.IsRef())
	require.Equal(t, arena.Ref(0x1000), w.Ref())
	require.Equal(t, "memory 0x1000", w.String())

	w = 0
	require.False(t, w.IsLog())
	require.False(t, w.IsRef())
	require.Equal(t, "empty", w.String())
}

func TestEmptyArray(t *testing.T) {
	r := newRig(t)
	x := r.array(t, 1, nil)
	for _, ordinal := range []uint64{0, 1, 511, 512, 65535, 65536, 1 << 30, rowid.MaxOrdinal} {
		require.Zero(t, r.load(t, x, ordinal))
	}
	require.Zero(t, x.HighWater())
	require.NoError(t, x.Scan(0, func(uint64, Word) bool { t.Fatal("slot in an empty array"); return true }))
	require.Zero(t, r.arena.Stats().InUse, "reading takes no memory")
}

func TestArraySlotsAtBoundaries(t *testing.T) {
	ordinals := []uint64{1, 2, 510, 511, 512, 513, 65535, 65536, 65537, 1 << 20, 1<<20 + 65536*9, 3 << 22}
	for _, order := range [][]uint64{ordinals, reversed(ordinals)} {
		r := newRig(t)
		x := r.array(t, 1, nil)
		for i, ordinal := range order {
			w := logWord(ordinal)
			if i%2 == 0 {
				require.NoError(t, x.Set(0, ordinal, w))
			} else {
				swapped, err := x.CompareAndSwap(0, ordinal, 0, w)
				require.NoError(t, err)
				require.True(t, swapped)
			}
			require.Greater(t, x.HighWater(), ordinal)
			require.Zero(t, x.HighWater()%PageSlots, "steps of a page")
			require.Zero(t, r.load(t, x, ordinal+100))
		}
		for _, ordinal := range order {
			require.Equal(t, logWord(ordinal), r.load(t, x, ordinal))
		}
		require.Equal(t, ordinals, scanned(t, x, 0))
		require.Equal(t, ordinals[4:], scanned(t, x, 512))
		require.Equal(t, ordinals[5:], scanned(t, x, 513))
		require.Empty(t, scanned(t, x, 1<<40))
	}
}

func reversed(list []uint64) []uint64 {
	var r []uint64
	for i := range list {
		r = append(r, list[len(list)-1-i])
	}
	return r
}

// scanned lists the ordinals of a scan and checks their words.
func scanned(t testing.TB, x *Array, from uint64) (ordinals []uint64) {
	require.NoError(t, x.Scan(from, func(ordinal uint64, w Word) bool {
		require.Equal(t, logWord(ordinal), w)
		ordinals = append(ordinals, ordinal)
		return true
	}))
	return ordinals
}

func TestScanStops(t *testing.T) {
	r := newRig(t)
	x := r.array(t, 1, nil)
	for ordinal := uint64(1); ordinal <= 2000; ordinal++ {
		require.NoError(t, x.Set(0, ordinal, logWord(ordinal)))
	}
	n := 0
	require.NoError(t, x.Scan(0, func(uint64, Word) bool { n++; return n < 700 }))
	require.Equal(t, 700, n)
}

func TestCompareAndSwapFailsOnAnotherWord(t *testing.T) {
	r := newRig(t)
	x := r.array(t, 1, nil)
	swapped, err := x.CompareAndSwap(0, 7, logWord(1), logWord(2))
	require.NoError(t, err)
	require.False(t, swapped)
	require.Zero(t, r.arena.Stats().InUse, "a failed swap takes no memory")

	require.NoError(t, x.Set(0, 7, logWord(1)))
	swapped, err = x.CompareAndSwap(0, 7, logWord(3), logWord(2))
	require.NoError(t, err)
	require.False(t, swapped)
	require.Equal(t, logWord(1), r.load(t, x, 7))
}

// Ordinals may begin near their end: the directory covers what is in use.
func TestOrdinalsNearTheLast(t *testing.T) {
	r := newRig(t)
	x := r.array(t, 1, nil)
	for ordinal := uint64(rowid.MaxOrdinal - 70_000); ordinal <= rowid.MaxOrdinal; ordinal += 1000 {
		require.NoError(t, x.Set(0, ordinal, logWord(1)))
	}
	require.NoError(t, x.Set(0, rowid.MaxOrdinal, logWord(2)))
	require.Equal(t, logWord(2), r.load(t, x, rowid.MaxOrdinal))
	require.Equal(t, uint64(rowid.MaxOrdinal+1), x.HighWater())
	require.LessOrEqual(t, len(x.dir.Load().blocks), 4)
	n := 0
	require.NoError(t, x.Scan(0, func(uint64, Word) bool { n++; return true }))
	require.Equal(t, 71, n)

	require.ErrorIs(t, x.Set(0, 1, logWord(1)), fault.ErrMemoryLimit, "too far away")
	require.ErrorIs(t, x.Set(0, rowid.MaxOrdinal+1, logWord(1)), fault.ErrMemoryLimit)
	require.Zero(t, r.load(t, x, 1))
}

func TestMemoryLimitIsAnError(t *testing.T) {
	a := arena.New(arena.Config{Limit: arena.ChunkSize})
	d := epoch.NewDomain(a)
	x := NewArray(d, a, 1, nil)
	var err error
	var ordinal uint64
	for ordinal = 1; err == nil; ordinal += PageSlots {
		require.Less(t, ordinal, uint64(1<<30))
		_, err = x.CompareAndSwap(0, ordinal, 0, logWord(ordinal))
	}
	require.ErrorIs(t, err, fault.ErrMemoryLimit)
	w, err := x.Load(ordinal - PageSlots)
	require.NoError(t, err)
	require.Zero(t, w)
	require.NoError(t, x.Close())
	require.Zero(t, a.Stats().InUse, "Close frees everything")
}
