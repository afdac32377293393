package arena

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
)

func TestEmptyArenaReservesNothing(t *testing.T) {
	a := New(Config{})
	require.Equal(t, Stats{}, a.Stats())
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
}

func TestAllocAfterClose(t *testing.T) {
	a := New(Config{})
	require.NoError(t, a.Close())
	_, err := a.Alloc(0, 100)
	require.ErrorIs(t, err, fault.ErrClosed)
}

func TestBlockSizes(t *testing.T) {
	tests := []struct {
		size  int
		inUse int64
		err   error
	}{
		{0, 16, nil},
		{1, 16, nil},
		{17, 24, nil},
		{129, 144, nil},
		{maxSmall, maxSmall, nil},
		{maxSmall + 1, 8 * pageSize, nil},
		{2<<20 + 64<<10, 2<<20 + 64<<10, nil},
		{MaxBlock, MaxBlock, nil},
		{MaxBlock + 1, 0, fault.ErrRowTooLarge},
		{-1, 0, fault.ErrRowTooLarge},
	}
	for _, tt := range tests {
		t.Run(sizeName(tt.size), func(t *testing.T) {
			a := newArena(t, Config{})
			r, err := a.Alloc(3, tt.size)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.inUse, a.Stats().InUse)
			if err != nil {
				return
			}
			clear(a.Bytes(r, tt.size))
			a.Free(3, r, tt.size)
			require.Zero(t, a.Stats().InUse)
			validate(t, a)
		})
	}
}

func TestAccess(t *testing.T) {
	a := newArena(t, Config{})
	r := mustAlloc(t, a, 0, 24)
	a.Word(r + 8).Store(0x0807060504030201)
	b := a.Bytes(r+8, 8)
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, b)
	require.Equal(t, 8, cap(b))
	require.Equal(t, byte(2), *(*byte)(a.Pointer(r + 9)))
}

// fillUp allocates blocks of the size until the limit.
func fillUp(t *testing.T, a *Arena, size int) []Ref {
	var refs []Ref
	for {
		r, err := a.Alloc(uint32(len(refs)), size)
		if err != nil {
			require.ErrorIs(t, err, fault.ErrMemoryLimit)
			return refs
		}
		refs = append(refs, r)
	}
}

func freeAll(a *Arena, refs []Ref, size int) {
	for i, r := range refs {
		a.Free(uint32(i), r, size)
	}
}

func TestLimit(t *testing.T) {
	const limit = 3*ChunkSize + ChunkSize/2
	a := newArena(t, Config{Limit: limit, Shards: 2})
	for _, size := range []int{136, 2048, 200, 300 << 10, 48, 70 << 10, 136} {
		refs := fillUp(t, a, size)
		st := a.Stats()
		require.EqualValues(t, 3*ChunkSize, st.Reserved)
		require.Greater(t, st.InUse, int64(3*ChunkSize)*8/10, "size %d", size)
		validate(t, a)
		freeAll(a, refs, size)
		require.Zero(t, a.Stats().InUse)
		validate(t, a)
	}
}

func TestLimitBelowOneChunk(t *testing.T) {
	a := newArena(t, Config{Limit: ChunkSize - 1})
	_, err := a.Alloc(0, 8)
	require.ErrorIs(t, err, fault.ErrMemoryLimit)
	_, err = a.Alloc(0, MaxBlock)
	require.ErrorIs(t, err, fault.ErrMemoryLimit)
}

func TestFreeChunksGoBack(t *testing.T) {
	const size, count = 1000, 48 << 10
	a := newArena(t, Config{Shards: 1})
	for range 3 {
		refs := make([]Ref, count)
		for i := range refs {
			refs[i] = mustAlloc(t, a, 0, size)
			clear(a.Bytes(refs[i], size))
		}
		require.Greater(t, a.Stats().Reserved, int64(count*size))
		freeAll(a, refs, size)
		quiesce(a)
		require.LessOrEqual(t, a.Stats().Reserved, int64(4*ChunkSize))
		validate(t, a)
	}
	require.LessOrEqual(t, len(a.table.chunks()), count*size/ChunkSize+4, "addresses are used again")
}

// TestLastingBlocksAside: what stays does not keep the memory of what goes.
func TestLastingBlocksAside(t *testing.T) {
	const size, count = 136, 300_000
	a := newArena(t, Config{Shards: 4})
	var refs, stay []Ref
	for i := range uint32(count) {
		refs = append(refs, mustAlloc(t, a, i, size))
		if i%512 == 0 {
			stay = append(stay, mustAllocLasting(t, a, i/512, 4096))
		}
	}
	validate(t, a)
	require.Greater(t, a.Stats().Reserved, int64(count*size))
	freeAll(a, refs, size)
	quiesce(a)
	validate(t, a)
	a.Trim()
	validate(t, a)
	require.LessOrEqual(t, a.Stats().Reserved, int64(2*ChunkSize), "chunk 0 and one of lasting blocks")
	freeAll(a, stay, 4096)
	a.Trim()
	validate(t, a)
	require.EqualValues(t, ChunkSize, a.Stats().Reserved)
	require.Zero(t, a.Stats().InUse)
}

// TestTrimAndGoOn: memory that was given back is there again when it is needed.
func TestTrimAndGoOn(t *testing.T) {
	a := newArena(t, Config{Shards: 2})
	for range 5 {
		var refs []Ref
		for i := range uint32(60_000) {
			refs = append(refs, mustAlloc(t, a, i, 200))
			clear(a.Bytes(refs[i], 200))
		}
		freeAll(a, refs, 200)
		quiesce(a)
		a.Trim()
		validate(t, a)
	}
	require.LessOrEqual(t, a.Stats().Reserved, int64(2*ChunkSize), "one may have been on its way")
	require.LessOrEqual(t, len(a.table.chunks()), 6, "chunks are used again")
}

// TestIdleShardsKeepNothing frees most blocks of one shard and allocates in
// another one, which must not need more memory.
func TestIdleShardsKeepNothing(t *testing.T) {
	const size, count = 136, 100_000
	a := newArena(t, Config{Shards: 4})
	refs := make([]Ref, count)
	for i := range refs {
		refs[i] = mustAlloc(t, a, 0, size)
	}
	for i := range refs {
		if i%4 != 0 {
			a.Free(1, refs[i], size)
		}
	}
	quiesce(a)
	before := a.Stats().Reserved
	for range count * 7 / 10 {
		mustAlloc(t, a, 2, size)
	}
	quiesce(a)
	require.LessOrEqual(t, a.Stats().Reserved, before)
	validate(t, a)
}

func TestGoHeapDoesNotGrow(t *testing.T) {
	if invariants.Enabled {
		t.Skip("chunks may lie in the Go heap")
	}
	a := newArena(t, Config{})
	before := heapBytes()
	for range 500_000 {
		mustAlloc(t, a, 0, 136)
	}
	require.Less(t, heapBytes()-before, int64(64<<10))
	runtime.KeepAlive(a)
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestPreparesAhead(t *testing.T) {
	a := newArena(t, Config{})
	chunks := func() int { quiesce(a); return a.Stats().Chunks }
	mustAlloc(t, a, 0, ChunkSize/4)
	require.Equal(t, 1, chunks(), "more than half a chunk is left")
	mustAlloc(t, a, 0, ChunkSize/4)
	require.Equal(t, 2, chunks())
}

// TestFreeFollowsTheSpan changes the owner of a span while a Free waits for
// the old one.
func TestFreeFollowsTheSpan(t *testing.T) {
	a := newArena(t, Config{Shards: 2})
	r := mustAlloc(t, a, 0, 136)
	sp, _ := a.table.spanAt(r)
	left := sp.left
	a.shards[0].latch.lock()
	a.shards[1].latch.lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Free(0, r, 136)
	}()
	time.Sleep(time.Millisecond) // usually enough to read the owner
	sp.owner.Store(1)
	a.shards[0].latch.unlock()
	time.Sleep(time.Millisecond)
	require.Equal(t, left, sp.left, "freed without the new owner's latch")
	a.shards[1].latch.unlock()
	<-done
	require.Equal(t, left+1, sp.left)
}

// TestCloseDuringPreparation closes while chunks are being prepared.
func TestCloseDuringPreparation(t *testing.T) {
	for i := range 30 {
		a := New(Config{})
		for range 100 + 10*i {
			mustAlloc(t, a, 0, 30<<10)
		}
		require.NoError(t, a.Close())
	}
}

// TestLimitWaitsForPreparation: memory that is being prepared counts as
// available.
func TestLimitWaitsForPreparation(t *testing.T) {
	for range 20 {
		a := New(Config{Limit: 2 * ChunkSize})
		for range 2 {
			for range (pagesPerChunk - 1) / 8 {
				mustAlloc(t, a, 0, 8*pageSize)
			}
		}
		_, err := a.Alloc(0, 8*pageSize)
		require.ErrorIs(t, err, fault.ErrMemoryLimit)
		require.NoError(t, a.Close())
	}
}

// TestStableBlocksGoBack: freed ones leave the system's memory, and their places
// are used for nothing else.
func TestStableBlocksGoBack(t *testing.T) {
	a := newArena(t, Config{})
	var refs []Ref
	for range 20_000 {
		refs = append(refs, mustAllocStable(t, a, 0))
	}
	full := a.Stats()
	keep := refs[0]
	for _, r := range refs[1:] {
		a.Free(0, r, StableBlock)
	}
	a.Trim()
	validate(t, a)
	empty := a.Stats()
	require.EqualValues(t, StableBlock, empty.InUse)
	require.Less(t, empty.Reserved, full.Reserved-int64(len(refs)-1000)*StableBlock)
	seen := map[Ref]bool{keep: true}
	for range len(refs) - 1 {
		seen[mustAllocStable(t, a, 0)] = true
	}
	require.Len(t, seen, len(refs), "no block twice")
	for _, r := range refs {
		require.True(t, seen[r], "a place was left unused")
	}
	require.LessOrEqual(t, a.Stats().Reserved, full.Reserved)
	validate(t, a)
}

// TestThin: one block in each chunk does not keep the others' memory.
func TestThin(t *testing.T) {
	t.Run("passing", func(t *testing.T) { testThin(t, 1024, mustAlloc) })
	t.Run("lasting", func(t *testing.T) { testThin(t, 4096, mustAllocLasting) })
}

func testThin(t *testing.T, size int, alloc func(testing.TB, *Arena, uint32, int) Ref) {
	a := newArena(t, Config{})
	n := 40 << 20 / size
	var refs []Ref
	for range n {
		refs = append(refs, alloc(t, a, 0, size))
	}
	full := a.Stats()
	last := Ref(0)
	var kept []Ref
	for _, r := range refs {
		if r>>chunkShift != last {
			last = r >> chunkShift
			kept = append(kept, r)
			continue
		}
		a.Free(0, r, size)
	}
	quiesce(a)
	require.Greater(t, a.Stats().Reserved, full.Reserved*3/4, "they keep their chunks")
	a.Thin()
	validate(t, a)
	require.Less(t, a.Stats().Reserved, full.Reserved/4)
	for range n - len(kept) {
		alloc(t, a, 0, size)
	}
	validate(t, a)
	require.Equal(t, full.InUse, a.Stats().InUse)
	require.LessOrEqual(t, a.Stats().Reserved, full.Reserved+2*ChunkSize, "the places are used again")
}
