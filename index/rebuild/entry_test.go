package rebuild

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

const testTable rowid.Table = 5

// edgeKeys end, begin and differ at and around the borders of the words.
func edgeKeys() [][]byte {
	var keys [][]byte
	for _, length := range []int{0, 1, 7, 8, 9, 15, 16, 17, 24, 25, 300} {
		for _, fill := range []string{"\x00", "a", "\xff"} {
			key := strings.Repeat(fill, length)
			keys = append(keys, []byte(key), []byte(key+"\x00"), []byte(key+"\xff"))
		}
	}
	return keys
}

func TestEntriesCompareLikeKeysAndRows(t *testing.T) {
	for _, a := range edgeKeys() {
		for _, b := range edgeKeys() {
			for _, ordinals := range [][2]uint64{{1, 1}, {1, 2}, {2, 1}, {rowid.MaxOrdinal, 1}, {0, 1}} {
				d := index.Compare(a, rowid.ID(ordinals[0]), b, rowid.ID(ordinals[1]))
				ea, eb := view(a, ordinals[0]), view(b, ordinals[1]).own()
				require.Equal(t, d < 0, before(ea, eb), "%x %x %v", a, b, ordinals)
				require.Equal(t, d > 0, before(eb, ea), "%x %x %v", a, b, ordinals)
				require.Equal(t, bytes.Equal(a, b), sameKey(ea, eb), "%x %x", a, b)
			}
		}
	}
}

func FuzzEntries(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"), uint64(1), uint64(2))
	f.Add([]byte("sixteen bytes ok"), []byte("sixteen bytes ok\x00"), uint64(2), uint64(1))
	f.Add([]byte("more than sixteen bytes"), []byte("more than sixteen bytes"), uint64(1), uint64(rowid.MaxOrdinal))
	f.Fuzz(func(t *testing.T, a, b []byte, rowA, rowB uint64) {
		if max(len(a), len(b)) > 1000 {
			t.Skip()
		}
		rowA, rowB = rowA&rowid.MaxOrdinal, rowB&rowid.MaxOrdinal
		d := index.Compare(a, rowid.ID(rowA), b, rowid.ID(rowB))
		require.Equal(t, d < 0, before(view(a, rowA), view(b, rowB)))
		require.Equal(t, d > 0, before(view(b, rowB), view(a, rowA)))
		require.Equal(t, a, roundTrip(a, rowA)[:len(a):len(a)])
	})
}

// roundTrip copies a key into an entry and out again.
func roundTrip(key []byte, ordinal uint64) []byte {
	var b index.Batch
	e := view(key, ordinal).own()
	e.appendTo(&b, rowid.Make(testTable, e.ordinal()))
	return append([]byte{}, b.Key(0)...)
}

func TestEntryHoldsItsKey(t *testing.T) {
	for _, key := range edgeKeys() {
		require.True(t, bytes.Equal(key, roundTrip(key, 1)), "%x", key)
		given := bytes.Clone(key)
		e := view(given, 1).own()
		clear(given)
		require.True(t, sameKey(e, view(key, 1)), "own keeps no memory of the caller")
	}
}

func TestEntrySize(t *testing.T) {
	require.EqualValues(t, 32, unsafe.Sizeof(entry{}))
	require.Zero(t, unsafe.Sizeof(latch{}.shards[0])%128)
}

func newTestTree(t testing.TB) (*tree, *epoch.Handle) {
	mem := arena.New(arena.Config{})
	domain := epoch.NewDomain(mem)
	t.Cleanup(func() {
		domain.Close()
		require.NoError(t, mem.Close())
	})
	return newTree(index.Spec{Table: testTable}), domain.Register()
}

func TestStatsFollowTheEntries(t *testing.T) {
	x, h := newTestTree(t)
	require.Zero(t, x.Stats())
	long := bytes.Repeat([]byte("k"), 1000)
	require.NoError(t, x.Insert(h, long, rowid.Make(testTable, 1), nil))
	require.NoError(t, x.Insert(h, long, rowid.Make(testTable, 1), nil))
	stats := x.Stats()
	require.EqualValues(t, 1, stats.Entries)
	require.InDelta(t, 1000, stats.Bytes, 100)
	removed, err := x.Remove(h, long, rowid.Make(testTable, 1), func() bool { return true })
	require.NoError(t, err)
	require.True(t, removed)
	require.Zero(t, x.Stats())
}

func TestClosedTreeIsEmpty(t *testing.T) {
	x, h := newTestTree(t)
	require.NoError(t, x.Insert(h, []byte("key"), rowid.Make(testTable, 1), nil))
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	require.Zero(t, x.Stats())
}

func TestScansDoNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checks allocate")
	}
	x, h := newTestTree(t)
	for range 1000 {
		key := []byte(strings.Repeat("k", rand.IntN(40)))
		require.NoError(t, x.Insert(h, key, rowid.Make(testTable, 1+rand.Uint64N(100)), nil))
	}
	var c index.Cursor
	var b index.Batch
	drain := func(r index.Range) {
		c.Reset()
		for more := true; more; {
			more, _ = x.Scan(h, r, &c, &b)
		}
	}
	for _, r := range []index.Range{{}, {Reverse: true}, {Lo: []byte("k"), Hi: []byte("kkkkkk")}} {
		drain(r)
		require.Zero(t, testing.AllocsPerRun(10, func() { drain(r) }), "%+v", r)
	}
}

func TestForeignRowsBreakAnInvariant(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("in test builds only")
	}
	x, h := newTestTree(t)
	require.Panics(t, func() { _ = x.Insert(h, nil, rowid.Make(testTable+1, 1), nil) })
	require.Panics(t, func() { _ = x.Insert(h, nil, rowid.Make(testTable, 0), nil) })
}
