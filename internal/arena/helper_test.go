package arena

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newArena(tb testing.TB, c Config) *Arena {
	tb.Helper()
	a := New(c)
	tb.Cleanup(func() { require.NoError(tb, a.Close()) })
	return a
}

func mustAlloc(tb testing.TB, a *Arena, shard uint32, size int) Ref {
	r, err := a.Alloc(shard, size)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func mustAllocLasting(tb testing.TB, a *Arena, shard uint32, size int) Ref {
	r, err := a.AllocLasting(shard, size)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func mustAllocStable(tb testing.TB, a *Arena, shard uint32) Ref {
	r, err := a.AllocStable(shard)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func sizeName(n int) string { return fmt.Sprintf("%dB", n) }

// quiesce waits until nothing is being prepared.
func quiesce(a *Arena) {
	h := &a.heap
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.preparing {
		h.progress.Wait()
	}
}

// validate checks every record of an arena that nobody uses meanwhile.
func validate(t *testing.T, a *Arena) {
	t.Helper()
	quiesce(a)
	v := validator{T: t, arena: a, listed: map[Ref]bool{}, vacant: map[Ref]bool{}, parked: map[Ref]bool{}}
	parked := int64(0)
	for base := a.heap.parked; base != 0; base = a.table.span(base).next {
		v.parked[base] = true
		parked += int64(a.table.span(base).pages) << pageShift
	}
	for _, chunk := range a.heap.vacant {
		v.vacant[chunk] = true
	}
	for i := range a.shards {
		v.shard(&a.shards[i])
	}
	for n := range a.table.chunks() {
		v.chunk(Ref(n) << chunkShift)
	}
	require.Empty(t, v.listed, "listed spans that no chunk has")
	require.Empty(t, v.parked, "parked spans that no chunk has")
	require.Equal(t, a.heap.chunks, v.chunks, "chunks in use")
	require.Equal(t, int64(v.chunks)*ChunkSize-parked, a.heap.reserved)
	require.Equal(t, parked, a.heap.parkedLen)
	require.Equal(t, a.heap.runs, v.runs, "free pages in long runs")
	require.Equal(t, a.heap.freePages, v.free, "free pages")
	require.Equal(t, a.heap.absent, v.absent, "free pages that are not in memory")
	require.Equal(t, a.heap.aside, v.aside, "those of lasting blocks")
	require.Equal(t, a.heap.empty, v.empty, "wholly free chunks")
	require.Equal(t, a.Stats().InUse, v.inUse, "bytes in use")
}

type validator struct {
	*testing.T
	arena               *Arena
	listed, vacant      map[Ref]bool
	parked              map[Ref]bool
	chunks, free, empty int
	absent, aside, runs int
	inUse               int64
}

func (v *validator) shard(s *shard) {
	for class, base := range s.lists {
		for prev := Ref(0); base != 0; {
			sp := v.arena.table.span(base)
			require.Equal(v, uint8(class), sp.class)
			require.Equal(v, prev, sp.prev)
			require.Equal(v, listed, sp.state)
			require.Equal(v, s.id, sp.owner.Load())
			require.False(v, v.listed[base])
			v.listed[base] = true
			prev, base = base, sp.next
		}
	}
}

func (v *validator) chunk(chunk Ref) {
	if v.vacant[chunk] {
		return
	}
	hd := v.arena.table.header(chunk)
	c := hd.chunkRecord()
	v.chunks++
	free, absent := &v.free, &v.absent
	if c.kind == lasting {
		free, absent = new(int), &v.aside // not part of the stock
	}
	require.Equal(v, int(c.longest), c.free.longest())
	require.Equal(v, int(c.inRuns), c.free.inRuns())
	v.runs += int(c.inRuns)
	for page := 1; page < pagesPerChunk; {
		if c.free[page>>6]>>(page&63)&1 == 1 {
			*free++
			if hd[page].absent {
				*absent++
			}
			page++
			continue
		}
		v.span(hd, chunk, page)
		if v.arena.heap.limit == 0 && c.kind != mixed {
			require.Equal(v, c.kind, v.kind(&hd[page]), "kind of a chunk and its block")
		}
		page += int(hd[page].pages)
	}
	if c.longest == pagesPerChunk-1 && c.kind != mixed {
		require.Equal(v, passing, c.kind)
		v.empty++
	}
}

func (v *validator) kind(sp *span) kind {
	if sp.class == largeClass {
		return passing
	}
	return v.arena.classes[sp.class].kind
}

func (v *validator) span(hd *header, chunk Ref, page int) {
	sp, base := &hd[page], chunk|Ref(page)<<pageShift
	for i := range int(sp.pages) {
		require.False(v, hd[page+i].absent, "page in a span, but not in memory")
		require.Equal(v, page, int(hd[page+i].first))
		require.Equal(v, page+i, hd.chunkRecord().free.nextGap(page+i), "page is free and in a span")
	}
	if sp.class == largeClass {
		v.inUse += int64(sp.pages) << pageShift
		return
	}
	c := &v.arena.classes[sp.class]
	require.Equal(v, c.pages, sp.pages)
	left := 0
	for i, w := range sp.words(c, &v.arena.table, base)[:(c.blocks+63)/64] {
		left += bits.OnesCount64(w)
		require.False(v, w != 0 && i < int(sp.lowest), "free block below the lowest word")
	}
	require.Equal(v, int(sp.left), left)
	if v.parked[base] {
		require.Equal(v, stableClass, int(sp.class))
		require.Equal(v, int(c.blocks), left)
		delete(v.parked, base)
		return
	}
	v.inUse += int64(int(c.blocks)-left) * int64(c.size)
	v.state(sp, c, base)
}

func (v *validator) state(sp *span, c *class, base Ref) {
	switch sp.state {
	case current:
		o := v.arena.shards[sp.owner.Load()].open[sp.class]
		require.Same(v, sp, o.span)
		require.Positive(v, sp.left)
	case listed:
		require.True(v, v.listed[base])
		require.Positive(v, sp.left)
		delete(v.listed, base)
	case full:
		require.Less(v, sp.left, c.listAt)
	}
}
