package rowid

import (
	"sync/atomic"
	"testing"
)

func BenchmarkAllocFresh(b *testing.B) {
	a := NewAllocator(1)
	for b.Loop() {
		if _, err := a.Alloc(0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAllocFreshParallel(b *testing.B) {
	a := NewAllocator(1)
	var shards atomic.Uint32
	b.RunParallel(func(pb *testing.PB) {
		shard := shards.Add(1)
		for pb.Next() {
			if _, err := a.Alloc(shard); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkAllocRecycled(b *testing.B) {
	a := NewAllocator(uint64(b.N) + 1_000_001)
	free := uint64(0)
	for b.Loop() {
		if free == 0 {
			b.StopTimer()
			for free < 1_000_000 {
				free++
				a.Free(free)
			}
			b.StartTimer()
		}
		free--
		if _, err := a.Alloc(0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFreeAlloc(b *testing.B) {
	a := NewAllocator(2)
	n := uint64(1)
	for b.Loop() {
		a.Free(n)
		n, _ = a.Alloc(0)
	}
}
