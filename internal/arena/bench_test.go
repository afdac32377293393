package arena

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkAllocFree(b *testing.B) {
	for _, size := range []int{40, 136, 2048, 4096, 20 << 10, 2 << 20} {
		b.Run(sizeName(size), func(b *testing.B) {
			a := newArena(b, Config{})
			for b.Loop() {
				a.Free(0, mustAlloc(b, a, 0, size), size)
			}
		})
	}
}

// BenchmarkReplace frees a random block of a large population and allocates
// another one, as updates and their reclamation do.
func BenchmarkReplace(b *testing.B) {
	const size, live = 136, 1 << 20
	a := newArena(b, Config{})
	rng := rand.New(rand.NewPCG(1, 2))
	refs := make([]Ref, live)
	for i := range refs {
		refs[i] = mustAlloc(b, a, 0, size)
	}
	for b.Loop() {
		i := rng.Uint64() % live
		a.Free(0, refs[i], size)
		refs[i] = mustAlloc(b, a, 0, size)
	}
}

func BenchmarkAllocFreeParallel(b *testing.B) {
	a := newArena(b, Config{})
	var shards atomic.Uint32
	b.RunParallel(func(pb *testing.PB) {
		shard := shards.Add(1)
		for pb.Next() {
			a.Free(shard, mustAlloc(b, a, shard, 136), 136)
		}
	})
}

// BenchmarkFill allocates without freeing and writes every block.
func BenchmarkFill(b *testing.B) {
	a := newArena(b, Config{Limit: 2 << 30})
	n := 0
	for b.Loop() {
		r, err := a.Alloc(0, 136)
		if err != nil {
			b.StopTimer()
			a.Close()
			a = newArena(b, Config{Limit: 2 << 30})
			b.StartTimer()
			continue
		}
		clear(a.Bytes(r, 136))
		n++
	}
}

var sink byte

func BenchmarkPointer(b *testing.B) {
	a := newArena(b, Config{})
	refs := make([]Ref, 256)
	for i := range refs {
		refs[i] = mustAlloc(b, a, 0, 136)
	}
	i := 0
	for b.Loop() {
		sink = *(*byte)(a.Pointer(refs[i&255]))
		i++
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Config{}).Close()
	}
}

func BenchmarkNewFirstAlloc(b *testing.B) {
	var most time.Duration
	for b.Loop() {
		start := time.Now()
		a := New(Config{})
		*(*byte)(a.Pointer(mustAlloc(b, a, 0, 136))) = 1
		most = max(most, time.Since(start))
		b.StopTimer()
		a.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(most.Microseconds()), "worst-µs")
}
