package micro

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestMain(m *testing.M) { os.Exit(Main(m, systems())) }

func systems() []System {
	var all []System
	for _, strategy := range rekindle.IndexStrategies() {
		all = append(all, Rekindle(strategy))
	}
	return all
}

// BenchmarkStore measures the engine. Single figures are chosen by name:
//
//	go test -run '^$' -bench 'Store/rows=/store=/read/' ./bench/micro
func BenchmarkStore(b *testing.B) { Run(b, systems()) }

func TestKeysAreAPermutation(t *testing.T) {
	keys := Keys(1000)
	seen := map[uint64]bool{}
	for i, k := range keys {
		require.Less(t, k, uint64(1000))
		seen[k] = true
		keys[i] = k
	}
	require.Len(t, seen, 1000)
	require.Equal(t, keys, Keys(1000))
	require.NotEqual(t, uint64(0), keys[0])
}

func TestValuesDiffer(t *testing.T) {
	a := AppendValue(nil, 1, 0)
	require.Len(t, a, ValueSize)
	require.Equal(t, a, AppendValue(nil, 1, 0))
	require.NotEqual(t, a, AppendValue(nil, 2, 0))
	require.NotEqual(t, a, AppendValue(nil, 1, 1))
}

func TestRowsOf(t *testing.T) {
	for _, c := range []struct {
		list  string
		short bool
		want  []int
	}{
		{"", false, []int{defaultRows}},
		{"", true, []int{shortRows}},
		{"5", true, []int{5}},
		{"1000000,10000000", false, []int{1_000_000, 10_000_000}},
	} {
		got, err := rowsOf(c.list, c.short)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, bad := range []string{"0", "-1", "many", "1,", "1, 2"} {
		_, err := rowsOf(bad, false)
		require.ErrorContains(t, err, rowsVariable)
	}
}

func TestFloorAppends(t *testing.T) {
	w, err := newFloor(t.TempDir() + "/floor")
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, w.append())
	}
	require.EqualValues(t, 3*floorBytes, w.at)
	size, err := w.file.Size()
	require.NoError(t, err)
	require.EqualValues(t, floorFile, size)
	w.at = floorFile - floorBytes
	require.NoError(t, w.append())
	require.Zero(t, w.at)
	require.NoError(t, w.file.Close())
}

func TestStores(t *testing.T) {
	for _, s := range systems() {
		t.Run(s.Name, func(t *testing.T) { CheckSystem(t, s) })
	}
}

func TestUpdatesSpreadOverTheRows(t *testing.T) {
	f := &fixture{rows: 10}
	r := rand.New(rand.NewPCG(1, 1))
	seen := map[uint64]bool{}
	for range 200 {
		seen[f.key(r)] = true
	}
	require.Len(t, seen, 10)
}

func TestCallersDiffer(t *testing.T) {
	store, err := systems()[0].Open(t.TempDir(), true)
	require.NoError(t, err)
	f := &fixture{rows: 10}
	seen := map[uint64]bool{}
	for range 10 {
		c, err := f.newCaller(store)
		require.NoError(t, err)
		seen[c.Uint64()] = true
		require.NoError(t, c.Close())
	}
	require.Len(t, seen, 10)
	require.NoError(t, store.Close())
}
