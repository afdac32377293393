//go:build unix

package chainindex

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

var benchEntries = flag.Int("entries", 400_000, "entries of the benchmarks")

func BenchmarkIndex(b *testing.B) { indextest.Benchmark(b, Strategy{}) }

// benchKey is the i-th of the keys of a benchmark, in no order.
func benchKey(dst []byte, i int) []byte {
	return binary.BigEndian.AppendUint64(dst[:0], uint64(i)*0x9E3779B97F4A7C15)
}

func benchRow(i int) rowid.ID { return rowid.Make(testTable, uint64(i+1)) }

// fill adds the entries [from, to).
func fill(b *testing.B, x *Index, h *epoch.Handle, from, to int) {
	var key []byte
	for i := from; i < to; i++ {
		key = benchKey(key, i)
		h.Pin()
		err := x.Insert(h, key, benchRow(i), nil)
		h.Unpin()
		require.NoError(b, err)
	}
}

// benchChain is a chain of so many layers, each file a quarter of the next
// older one, with an empty head; of one layer, it is all in the head. It returns
// how many entries it has.
func benchChain(b *testing.B, layers int) (*rig, *Index, *epoch.Handle, int) {
	r := newRig(b)
	x := r.create()
	x.plan = lagging
	h := r.domain.Register()
	if layers == 1 {
		fill(b, x, h, 0, *benchEntries)
		return r, x, h, *benchEntries
	}
	n := 0
	for size := *benchEntries; x.Layers() < layers; size /= 4 {
		fill(b, x, h, n, n+size)
		n += size
		r.checkpoint(x)
	}
	require.Equal(b, layers, x.Layers())
	return r, x, h, n
}

func forChains(b *testing.B, run func(b *testing.B, x *Index, h *epoch.Handle, n int)) {
	for layers := 1; layers <= 1+maxFiles; layers++ {
		b.Run(fmt.Sprintf("layers=%d", layers), func(b *testing.B) {
			_, x, h, n := benchChain(b, layers)
			b.ResetTimer()
			defer cpuTime(b)()
			run(b, x, h, n)
		})
	}
}

func BenchmarkChainGet(b *testing.B) {
	forChains(b, func(b *testing.B, x *Index, h *epoch.Handle, n int) {
		var key []byte
		var rows []rowid.ID
		b.ReportAllocs()
		for range b.N {
			key = benchKey(key, rand.IntN(n))
			h.Pin()
			rows, _ = x.Lookup(h, key, rows[:0])
			h.Unpin()
			if len(rows) != 1 {
				b.Fatal(rows)
			}
		}
	})
}

func BenchmarkChainScan100(b *testing.B) {
	forChains(b, func(b *testing.B, x *Index, h *epoch.Handle, n int) {
		var key []byte
		var c index.Cursor
		batch := index.Batch{First: 64, Max: 36}
		b.ReportAllocs()
		for range b.N {
			key = benchKey(key, rand.IntN(n))
			c.Reset()
			for range 2 {
				h.Pin()
				_, err := x.Scan(h, index.Range{Lo: key}, &c, &batch)
				h.Unpin()
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkChainInsert(b *testing.B) {
	for _, c := range []struct {
		name   string
		unique index.Checker
	}{{"any", nil}, {"unique", allowAll{}}} {
		b.Run(c.name, func(b *testing.B) {
			forChains(b, func(b *testing.B, x *Index, h *epoch.Handle, n int) {
				var key []byte
				b.ReportAllocs()
				for i := range b.N {
					key = benchKey(key, n+i)
					h.Pin()
					err := x.Insert(h, key, benchRow(n+i), c.unique)
					h.Unpin()
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkChainRemove(b *testing.B) {
	forChains(b, func(b *testing.B, x *Index, h *epoch.Handle, n int) {
		var key []byte
		for i := range b.N {
			key = benchKey(key, i%n)
			h.Pin()
			_, err := x.Remove(h, key, benchRow(i%n), always)
			h.Unpin()
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpen opens an index and reads one entry; BenchmarkOpen/reads goes on
// to read 10,000, which is where nodes are checked.
func BenchmarkOpen(b *testing.B) {
	for n := *benchEntries / 100; n <= *benchEntries; n *= 10 {
		r := newRig(b)
		x := r.create()
		h := r.domain.Register()
		fill(b, x, h, 0, n)
		files := r.checkpoint(x)
		for _, reads := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("entries=%d/reads=%d", n, reads), func(b *testing.B) {
				defer cpuTime(b)()
				for range b.N {
					y, err := Open(b.Context(), r.spec, files)
					require.NoError(b, err)
					var key []byte
					var rows []rowid.ID
					for range reads {
						key = benchKey(key, rand.IntN(n))
						h.Pin()
						rows, err = y.Lookup(h, key, rows[:0])
						h.Unpin()
						if err != nil || len(rows) != 1 {
							b.Fatal(rows, err)
						}
					}
					require.NoError(b, y.Close())
					r.domain.Reclaim()
				}
			})
		}
	}
}

// BenchmarkCheckpoint writes a whole index, or a hundredth of it as new entries.
func BenchmarkCheckpoint(b *testing.B) {
	for _, parts := range []int{1, 100} {
		b.Run(fmt.Sprintf("part=1∕%d", parts), func(b *testing.B) {
			_, x, h, n := benchChain(b, 2)
			r := newRig(b)
			r.number = 1 << 20
			var bytes, entries int64
			for range b.N {
				b.StopTimer()
				fill(b, x, h, n, n+*benchEntries/parts)
				n += *benchEntries / parts
				x.plan = lagging
				c, _ := r.begin(x)
				b.StartTimer()
				files, err := c.Write(b.Context(), r.createFile)
				require.NoError(b, err)
				c.Published()
				bytes += files[0].Size
				entries += int64(*benchEntries / parts)
			}
			b.ReportMetric(float64(bytes)/float64(entries), "B/entry")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(entries), "ns/entry")
		})
	}
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
