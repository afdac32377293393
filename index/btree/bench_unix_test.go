//go:build unix

package btree

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

var benchKeys = flag.Int("keys", 1_000_000, "entries in the trees of the benchmarks")

// randomKey is the i-th of a sequence of distinct random keys.
func randomKey(buf []byte, i uint64) []byte {
	z := i * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	binary.BigEndian.PutUint64(buf[:8], z^z>>31)
	return buf[:8]
}

// loaded keeps one tree of each kind for all benchmarks that only read.
var loaded sync.Map

func loadedTree(b *testing.B, kind int) *rig {
	if r, ok := loaded.Load(kind); ok {
		return r.(*rig)
	}
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	tree, err := New(Config{Arena: a, Store: kinds[kind].store(a)})
	if err != nil {
		b.Fatal(err)
	}
	r := &rig{Tree: tree, t: b, arena: a, domain: d, h: d.Register()}
	var buf [8]byte
	for i := range uint64(*benchKeys) {
		r.h.Pin()
		if err := r.Insert(r.h, randomKey(buf[:], i), rowid.ID(i+1), nil); err != nil {
			b.Fatal(err)
		}
		r.h.Unpin()
	}
	loaded.Store(kind, r)
	return r
}

func forKinds(b *testing.B, fn func(b *testing.B, kind int)) {
	for i, kind := range kinds[:2] {
		b.Run(kind.name, func(b *testing.B) { fn(b, i) })
	}
}

func BenchmarkGet(b *testing.B) {
	forKinds(b, func(b *testing.B, kind int) {
		r := loadedTree(b, kind)
		b.ResetTimer()
		defer cpuTime(b)()
		benchGet(b, r, r.h, b.N, 1)
	})
}

func benchGet(b *testing.B, r *rig, h *epoch.Handle, n int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	var buf [8]byte
	var rows [4]rowid.ID
	for range n {
		i := rnd.Uint64N(uint64(*benchKeys))
		h.Pin()
		found, err := r.Lookup(h, randomKey(buf[:], i), rows[:0])
		h.Unpin()
		if err != nil || len(found) != 1 {
			b.Error(i, found, err)
			return
		}
	}
}

func BenchmarkGetBatch(b *testing.B) {
	forKinds(b, func(b *testing.B, kind int) {
		r := loadedTree(b, kind)
		rnd := rand.New(rand.NewPCG(1, 0))
		var space [16][8]byte
		keys := make([][]byte, 16)
		var rows []rowid.ID
		var ends []int
		b.ResetTimer()
		defer cpuTime(b)()
		for n := 0; n < b.N; n += len(keys) {
			for i := range keys {
				keys[i] = randomKey(space[i][:], rnd.Uint64N(uint64(*benchKeys)))
			}
			r.h.Pin()
			var err error
			rows, ends, err = r.LookupBatch(r.h, keys, rows[:0], ends[:0])
			r.h.Unpin()
			if err != nil || len(rows) != len(keys) {
				b.Fatal(len(rows), err)
			}
		}
	})
}

// cpuTime reports the time that the process had a processor for, which other
// processes disturb less than the time on the wall.
func cpuTime(b *testing.B) func() {
	start := processTime()
	return func() { b.ReportMetric(float64(processTime()-start)/float64(b.N), "cpu-ns/op") }
}

func processTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkBuild(b *testing.B) {
	keys := make([][8]byte, *benchKeys)
	for i := range keys {
		randomKey(keys[i][:], uint64(i))
	}
	slices.SortFunc(keys, func(a, b [8]byte) int { return bytes.Compare(a[:], b[:]) })
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			start := processTime()
			for range b.N {
				a := arena.New(arena.Config{})
				bu, err := NewBuilder(Config{Arena: a, Store: kind.store(a)}, 1)
				if err != nil {
					b.Fatal(err)
				}
				for i := range keys {
					if err := bu.Add(keys[i][:], rowid.ID(i+1)); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := bu.Finish(); err != nil {
					b.Fatal(err)
				}
				_ = a.Close()
			}
			b.ReportMetric(float64(processTime()-start)/float64(b.N)/float64(*benchKeys), "cpu-ns/key")
		})
	}
}

func BenchmarkGetParallel(b *testing.B) {
	forKinds(b, func(b *testing.B, kind int) {
		r := loadedTree(b, kind)
		var seeds atomic.Uint64
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			n := 0
			h := r.domain.Register()
			for pb.Next() {
				n++
				if n%100 == 0 {
					benchGet(b, r, h, 100, seeds.Add(1))
				}
			}
		})
	})
}

func BenchmarkInsert(b *testing.B) {
	forKinds(b, func(b *testing.B, kind int) {
		start := processTime()
		for range b.N {
			loaded.Delete(kind)
			r := loadedTree(b, kind)
			s := r.Stats()
			b.ReportMetric(float64(s.Bytes)/float64(s.Entries), "B/entry")
		}
		b.ReportMetric(float64(processTime()-start)/float64(b.N)/float64(*benchKeys), "cpu-ns/key")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*benchKeys), "ns/key")
	})
}

func BenchmarkScan100(b *testing.B) {
	forKinds(b, func(b *testing.B, kind int) {
		r := loadedTree(b, kind)
		rnd := rand.New(rand.NewPCG(1, 0))
		var buf [8]byte
		var c index.Cursor
		batch := index.Batch{First: 100}
		b.ResetTimer()
		defer cpuTime(b)()
		for range b.N {
			c.Reset()
			rng := index.Range{Lo: randomKey(buf[:], rnd.Uint64N(uint64(*benchKeys)))}
			for n := 0; n < 100; n += batch.Len() {
				r.h.Pin()
				more, err := r.Scan(r.h, rng, &c, &batch)
				r.h.Unpin()
				if err != nil {
					b.Fatal(err)
				}
				if !more {
					break
				}
			}
		}
	})
}
