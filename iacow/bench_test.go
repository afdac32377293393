package iacow

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

var benchKeys = flag.Int("keys", 1_000_000, "entries in the indexes of the benchmarks")

// benchRig is an index on the real file system.
type benchRig struct {
	b    *testing.B
	spec index.Spec
	ix   index.Index
	h    *epoch.Handle
	dir  string
	n    uint64
	sum  []index.FileInfo // files of the last checkpoint
}

func newBenchRig(b *testing.B) *benchRig {
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	r := &benchRig{b: b, h: d.Register(), dir: b.TempDir()}
	r.spec = index.Spec{Table: testTable, Name: "t.i", Arena: a, Domain: d, FS: vfs.OS(), Logger: slog.New(slog.DiscardHandler)}
	b.Cleanup(func() {
		require.NoError(b, r.ix.Close())
		d.Close()
		require.NoError(b, a.Close())
	})
	return r
}

// mixed is the i-th of a sequence of distinct random keys.
func mixed(i uint64) uint64 {
	z := i * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *benchRig) load(direct bool) {
	var err error
	if direct {
		r.ix, err = btree.New(btree.Config{Arena: r.spec.Arena})
	} else {
		r.ix, err = Strategy{}.Create(r.spec)
	}
	require.NoError(r.b, err)
	for i := range *benchKeys {
		r.insert(uint64(i))
	}
}

func (r *benchRig) insert(i uint64) { insertKey(r.b, r.ix, r.h, i) }

func insertKey(b *testing.B, ix index.Index, h *epoch.Handle, i uint64) {
	var buf [8]byte
	putKey(&buf, i)
	h.Pin()
	err := ix.Insert(h, buf[:], rowid.ID(i+1), nil)
	h.Unpin()
	if err != nil {
		b.Fatal(err)
	}
}

func removeKey(b *testing.B, ix index.Index, h *epoch.Handle, i uint64) {
	var buf [8]byte
	putKey(&buf, i)
	h.Pin()
	_, err := ix.Remove(h, buf[:], rowid.ID(i+1), func() bool { return true })
	h.Unpin()
	if err != nil {
		b.Fatal(err)
	}
}

func putKey(buf *[8]byte, i uint64) {
	z := mixed(i)
	for at := range buf {
		buf[at] = byte(z >> (56 - 8*at))
	}
}

func (r *benchRig) get(rnd *rand.Rand, rows []rowid.ID) {
	var buf [8]byte
	putKey(&buf, rnd.Uint64N(uint64(*benchKeys)))
	r.h.Pin()
	rows, err := r.ix.Lookup(r.h, buf[:], rows[:0])
	r.h.Unpin()
	if err != nil || len(rows) != 1 {
		r.b.Fatal(rows, err)
	}
}

func (r *benchRig) begin() index.Capture {
	r.n++
	c, err := r.ix.(*Index).BeginCheckpoint(context.Background(), r.n)
	require.NoError(r.b, err)
	return c
}

// checkpoint returns the bytes written.
func (r *benchRig) checkpoint() int64 {
	c := r.begin()
	files, err := c.Write(context.Background(), func(ext string) (vfs.File, error) {
		return r.spec.FS.Create(filepath.Join(r.dir, fmt.Sprintf("%d.%s", r.n, ext)))
	})
	require.NoError(r.b, err)
	c.Published()
	r.sum = files
	if files[0].Checkpoint == r.n {
		return files[0].Size
	}
	return 0
}

func (r *benchRig) reopen() {
	require.NoError(r.b, r.ix.Close())
	var err error
	r.ix, err = Strategy{}.Open(context.Background(), r.spec, r.sum)
	require.NoError(r.b, err)
}

func perOp(b *testing.B, start time.Duration, n int) {
	b.ReportMetric(float64(cpuTime()-start)/float64(n), "cpu-ns/op")
}

func BenchmarkInsert(b *testing.B) {
	for _, direct := range []bool{true, false} {
		b.Run(kindOf(direct), func(b *testing.B) {
			start := cpuTime()
			for range b.N {
				r := newBenchRig(b)
				r.load(direct)
			}
			perOp(b, start, b.N**benchKeys)
		})
	}
}

func kindOf(direct bool) string {
	if direct {
		return "direct"
	}
	return "iacow"
}

func BenchmarkGet(b *testing.B) {
	for _, kind := range []string{"direct", "iacow", "shrunk", "reopened", "reopened and changed"} {
		b.Run(kind, func(b *testing.B) {
			r := newBenchRig(b)
			r.load(kind == "direct")
			if kind != "direct" && kind != "iacow" {
				r.checkpoint()
			}
			switch kind {
			case "shrunk":
				require.NoError(b, r.ix.(*Index).Shrink(b.Context(), true))
			case "reopened", "reopened and changed":
				r.reopen()
			}
			if kind == "reopened and changed" {
				for i := range uint64(*benchKeys) {
					removeKey(b, r.ix, r.h, i)
					r.insert(i)
				}
			}
			rnd := rand.New(rand.NewPCG(1, 0))
			rows := make([]rowid.ID, 0, 4)
			for range 3 * *benchKeys / 10 {
				r.get(rnd, rows)
			}
			b.ResetTimer()
			start := cpuTime()
			for range b.N {
				r.get(rnd, rows)
			}
			perOp(b, start, b.N)
		})
	}
}

// BenchmarkUpdate moves keys, without and with checkpoints all the time.
func BenchmarkUpdate(b *testing.B) {
	for _, kind := range []string{"direct", "iacow", "checkpoints"} {
		b.Run(kind, func(b *testing.B) {
			r := newBenchRig(b)
			r.load(kind == "direct")
			var stop atomic.Bool
			ended := make(chan int64)
			if kind == "checkpoints" {
				r.checkpoint()
				go func() {
					n := int64(0)
					for !stop.Load() {
						r.checkpoint()
						n++
					}
					ended <- n
				}()
			}
			rnd := rand.New(rand.NewPCG(1, 0))
			b.ResetTimer()
			start := cpuTime()
			for range b.N {
				i := rnd.Uint64N(uint64(*benchKeys))
				removeKey(b, r.ix, r.h, i)
				r.insert(i)
			}
			perOp(b, start, b.N)
			b.StopTimer()
			stop.Store(true)
			if kind == "checkpoints" {
				b.ReportMetric(float64(<-ended), "checkpoints")
			}
			s := r.ix.Stats()
			b.ReportMetric(float64(s.Bytes)/float64(s.Entries), "B/entry")
		})
	}
}

// BenchmarkOpen opens an index and reads one entry.
func BenchmarkOpen(b *testing.B) {
	r := newBenchRig(b)
	r.load(false)
	r.checkpoint()
	for round := range uint64(6) {
		for i := range uint64(*benchKeys / 10_000) {
			removeKey(b, r.ix, r.h, i*7+round)
			r.insert(i*7 + round)
		}
		r.checkpoint()
	}
	b.ReportMetric(float64(len(r.sum)), "files")
	require.NoError(b, r.ix.Close())
	rnd := rand.New(rand.NewPCG(1, 0))
	rows := make([]rowid.ID, 0, 4)
	var opening, first time.Duration
	for range b.N {
		start := time.Now()
		ix, err := Strategy{}.Open(context.Background(), r.spec, r.sum)
		require.NoError(b, err)
		opening += time.Since(start)
		start = time.Now()
		r.ix = ix
		r.get(rnd, rows)
		first += time.Since(start)
		b.StopTimer()
		require.NoError(b, ix.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(opening.Nanoseconds())/float64(b.N)/1e3, "open-µs")
	b.ReportMetric(float64(first.Nanoseconds())/float64(b.N)/1e3, "first-µs")
	r.ix, _ = Strategy{}.Create(r.spec)
}

// BenchmarkFirstReads reads 10,000 random entries of an index just opened.
func BenchmarkFirstReads(b *testing.B) {
	r := newBenchRig(b)
	r.load(false)
	r.checkpoint()
	rnd := rand.New(rand.NewPCG(1, 0))
	rows := make([]rowid.ID, 0, 4)
	for range b.N {
		b.StopTimer()
		r.reopen()
		b.StartTimer()
		for range 10_000 {
			r.get(rnd, rows)
		}
	}
}

// BenchmarkCheckpointBytes touches a hundredth of the leaves between two
// checkpoints.
func BenchmarkCheckpointBytes(b *testing.B) {
	r := newBenchRig(b)
	r.load(false)
	start := cpuTime()
	full := r.checkpoint()
	b.ReportMetric(float64(full), "full-B")
	b.ReportMetric(float64(cpuTime()-start)/1e6, "full-cpu-ms")
	leaves := uint64(full / blockBytes)
	b.ResetTimer()
	var written int64
	n := uint64(0)
	start = cpuTime()
	for range b.N {
		for range leaves / 100 {
			n++
			i := mixed(n) % uint64(*benchKeys)
			removeKey(b, r.ix, r.h, i)
			r.insert(i)
		}
		written += r.checkpoint()
	}
	b.ReportMetric(float64(written)/float64(b.N)/float64(full)*100, "incremental-%")
	b.ReportMetric(float64(cpuTime()-start)/1e6/float64(b.N), "cpu-ms/op")
}
