package rowid

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
)

func alloc(t *testing.T, a *Allocator, shard uint32) uint64 {
	t.Helper()
	n, err := a.Alloc(shard)
	require.NoError(t, err)
	return n
}

func TestFreshOrdinalsAreDenseFromTheFirst(t *testing.T) {
	for _, first := range []uint64{0, 1, 2, 63, 64, 65, 512, 1 << 40} {
		a := NewAllocator(first)
		want := max(first, 1)
		for i := range uint64(3 * rangeSize) {
			require.Equal(t, want+i, alloc(t, a, 5))
			require.Greater(t, a.HighWater(), want+i)
		}
		require.LessOrEqual(t, a.HighWater(), want+4*rangeSize)
	}
}

func TestShardsDoNotShareRanges(t *testing.T) {
	a := NewAllocator(1)
	x, y := alloc(t, a, 0), alloc(t, a, 1)
	require.NotEqual(t, x/rangeSize, y/rangeSize)
	require.Equal(t, x+1, alloc(t, a, 0))
	require.Equal(t, y+1, alloc(t, a, 1))
	require.Equal(t, x+2, alloc(t, a, uint32(len(a.shards))), "shard numbers wrap")
}

func TestFreedOrdinalsComeFirst(t *testing.T) {
	for _, count := range []int{1, 2, magazineSize - 1, magazineSize, magazineSize + 1, 3*magazineSize + 7} {
		a := NewAllocator(1)
		for range count {
			alloc(t, a, 0)
		}
		freed := map[uint64]bool{}
		for n := range uint64(count) {
			a.Free(n + 1)
			freed[n+1] = true
		}
		mark := a.HighWater()
		for range count {
			n := alloc(t, a, 1)
			require.True(t, freed[n], "ordinal %d was not free", n)
			delete(freed, n)
		}
		require.Equal(t, mark, a.HighWater())
		fresh := alloc(t, a, 1)
		require.Greater(t, fresh, uint64(count))
	}
}

// The source is asked when nothing else is left below the mark, and no more
// once it has said that it has none.
func TestSourceComesBeforeFreshOrdinals(t *testing.T) {
	a := NewAllocator(1000)
	stock, asked := []uint64{5, 6, 7}, 0
	a.SetSource(func() bool {
		asked++
		if len(stock) == 0 {
			return false
		}
		a.Free(stock[0])
		stock = stock[1:]
		return true
	})
	for want := uint64(5); want < 8; want++ {
		require.Equal(t, want, alloc(t, a, uint32(want)))
		require.EqualValues(t, 1000, a.HighWater())
	}
	for range 1000 {
		require.GreaterOrEqual(t, alloc(t, a, 0), uint64(1000))
	}
	require.Equal(t, 4, asked)
}

// What a shard has taken from the depot and does not use serves the others.
func TestMagazinesOfIdleShardsAreUsed(t *testing.T) {
	a := NewAllocator(1)
	for range 2 * magazineSize {
		alloc(t, a, 0)
	}
	for n := range uint64(2 * magazineSize) {
		a.Free(n + 1)
	}
	mark := a.HighWater()
	alloc(t, a, 0)
	alloc(t, a, 1)
	for range 2*magazineSize - 2 {
		alloc(t, a, 2)
	}
	require.Equal(t, mark, a.HighWater())
	require.EqualValues(t, 2*magazineSize, a.InUse())
}

// Random operations of several shards against a set of the ordinals in use.
func TestAllocatorModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	a := NewAllocator(rng.Uint64N(200))
	below := a.HighWater() - 1
	inUse := map[uint64]bool{}
	var list []uint64
	for step := range 200_000 {
		if draining := step/20_000%2 == 1; len(list) == 0 || rng.IntN(10) < 7 != draining {
			n := alloc(t, a, rng.Uint32N(8))
			require.False(t, inUse[n], "ordinal %d handed out twice", n)
			require.NotZero(t, n)
			require.Less(t, n, a.HighWater())
			inUse[n] = true
			list = append(list, n)
			continue
		}
		i := rng.IntN(len(list))
		n := list[i]
		list[i] = list[len(list)-1]
		list = list[:len(list)-1]
		delete(inUse, n)
		a.Free(n)
		require.Equal(t, below+uint64(len(inUse)), a.InUse())
	}
}

func TestConcurrentAllocAndFreeKeepOrdinalsUnique(t *testing.T) {
	const tasks, rounds = 8, 20_000
	a := NewAllocator(1)
	var owned sync.Map
	var wg sync.WaitGroup
	for task := range uint32(tasks) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(task), 1))
			var mine []uint64
			for range rounds {
				if len(mine) > 300 || (len(mine) > 0 && rng.IntN(5) < 2) {
					n := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					owned.Delete(n)
					a.Free(n)
					continue
				}
				n, err := a.Alloc(task / 2) // two tasks a shard
				if err != nil {
					t.Error(err)
					return
				}
				if _, taken := owned.LoadOrStore(n, task); taken {
					t.Errorf("ordinal %d handed out twice", n)
					return
				}
				mine = append(mine, n)
			}
		})
	}
	wg.Wait()
	bound := uint64(tasks*301 + len(a.shards)*(magazineSize+rangeSize) + magazineSize)
	require.Less(t, a.HighWater(), bound, "freed ordinals were not reused")
}

func TestLastOrdinals(t *testing.T) {
	a := NewAllocator(MaxOrdinal - 70)
	var n uint64
	for n < MaxOrdinal {
		n = alloc(t, a, 0)
	}
	for shard := range uint32(4) {
		_, err := a.Alloc(shard)
		require.ErrorIs(t, err, fault.ErrNoSpace)
	}
	a.Free(MaxOrdinal - 3)
	require.Equal(t, uint64(MaxOrdinal-3), alloc(t, a, 1))
	_, err := a.Alloc(1)
	require.ErrorIs(t, err, fault.ErrNoSpace)
}

func TestReserveOnlyRaises(t *testing.T) {
	a := NewAllocator(1)
	a.Reserve(1000)
	a.Reserve(10)
	require.Equal(t, uint64(1000), a.HighWater())
	require.Equal(t, uint64(1000), alloc(t, a, 3))
}

// The free lists give their memory back and a steady table allocates nothing.
func TestFreeListMemoryIsBounded(t *testing.T) {
	const rows = 1 << 20
	a := NewAllocator(rows + 1)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for n := range uint64(rows) {
		a.Free(n + 1)
	}
	require.Less(t, heap()-before, int64(rows*8*9/8))
	for range rows {
		alloc(t, a, 0)
	}
	require.Less(t, heap()-before, int64(64<<10))
	n := alloc(t, a, 0)
	perRun := testing.AllocsPerRun(10_000, func() {
		a.Free(n)
		n, _ = a.Alloc(0)
	})
	require.Zero(t, perRun)
}
