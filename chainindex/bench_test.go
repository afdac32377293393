package chainindex

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
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

// benchChain is a chain of so many layers, each file a quarter of the next
// older one, with an empty head. It returns how many entries it has.
func benchChain(b *testing.B, layers int) (*rig, *Index, *epoch.Handle, int) {
	r := newRig(b)
	x := r.create()
	h := r.domain.Register()
	n, size := 0, *benchEntries
	for range layers - 1 {
		for range size {
			h.Pin()
			require.NoError(b, x.Insert(h, benchKey(nil, n), benchRow(n), nil))
			h.Unpin()
			n++
		}
		r.checkpoint(x)
		size /= 4
	}
	if layers == 1 {
		for range size {
			h.Pin()
			require.NoError(b, x.Insert(h, benchKey(nil, n), benchRow(n), nil))
			h.Unpin()
			n++
		}
	}
	require.Equal(b, layers, x.Layers())
	return r, x, h, n
}

func forChains(b *testing.B, run func(b *testing.B, x *Index, h *epoch.Handle, n int)) {
	for layers := 1; layers <= 1+maxFiles; layers++ {
		b.Run(fmt.Sprintf("layers=%d", layers), func(b *testing.B) {
			_, x, h, n := benchChain(b, layers)
			b.ResetTimer()
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

type allowAll struct{}

func (allowAll) Check(rowid.ID) error { return nil }
