package epoch

import (
	"testing"

	"github.com/rekindledb/rekindle/internal/arena"
)

func BenchmarkPinUnpin(b *testing.B) {
	d, _ := newDomain(b)
	h := d.Register()
	for b.Loop() {
		h.Pin()
		h.Unpin()
	}
}

func BenchmarkPinUnpinParallel(b *testing.B) {
	d, _ := newDomain(b)
	b.RunParallel(func(pb *testing.PB) {
		h := d.Register()
		for pb.Next() {
			h.Pin()
			h.Unpin()
		}
	})
}

// BenchmarkRetire includes the later free, but not the allocation.
func BenchmarkRetire(b *testing.B) {
	for _, handles := range []int{1, 128} {
		b.Run(map[int]string{1: "handles=1", 128: "handles=128"}[handles], func(b *testing.B) {
			d, a := newDomain(b)
			h := d.Register()
			for range handles - 1 {
				d.Register()
			}
			retireInBatches(b, a, h)
		})
	}
}

func retireInBatches(b *testing.B, a *arena.Arena, h *Handle) {
	refs := make([]arena.Ref, 4096)
	for left := b.N; left > 0; left -= len(refs) {
		b.StopTimer()
		refs = refs[:min(left, len(refs))]
		for i := range refs {
			refs[i] = alloc(b, a, h)
		}
		b.StartTimer()
		for _, r := range refs {
			h.Retire(r, blockSize)
		}
	}
}

// BenchmarkReplace is the whole life of a block: allocation, pin, retirement,
// free.
func BenchmarkReplace(b *testing.B) {
	d, a := newDomain(b)
	h := d.Register()
	for b.Loop() {
		h.Pin()
		h.Retire(alloc(b, a, h), blockSize)
		h.Unpin()
	}
}

func BenchmarkReplaceParallel(b *testing.B) {
	d, a := newDomain(b)
	b.RunParallel(func(pb *testing.PB) {
		h := d.Register()
		for pb.Next() {
			h.Pin()
			h.Retire(alloc(b, a, h), blockSize)
			h.Unpin()
		}
	})
}

func BenchmarkNewDomain(b *testing.B) {
	for b.Loop() {
		a := arena.New(arena.Config{})
		d := NewDomain(a)
		d.Register()
		d.Close()
		if err := a.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
