//go:build unix

package peers

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/rekindledb/rekindle/rowid"
)

var keyCount = flag.Int("keys", 1_000_000, "entries in each tree")

// key is the i-th of a sequence of distinct random keys.
func key(buf []byte, i uint64) []byte {
	z := i * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	binary.BigEndian.PutUint64(buf[:8], z^z>>31)
	return buf[:8]
}

// BenchmarkTrees runs all operations on one tree after the other, each loaded
// once.
func BenchmarkTrees(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(*testing.B) contender
	}{
		{"google", newGoogle},
		{"tidwall", newTidwall},
		{"direct", func(b *testing.B) contender { return newOurs(b, false) }},
		{"ids", func(b *testing.B) contender { return newOurs(b, true) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			runTree(b, c.make(b))
			runtime.GC()
		})
	}
}

func runTree(b *testing.B, c contender) {
	n := uint64(*keyCount)
	once(b, "insert", int(n), 1, func(int) error { return load(c, 0, n) })
	more := n / 10
	once(b, "insert-by-two", int(more), 2, func(part int) error {
		return load(c.another(), n+uint64(part)*more/2, more/2)
	})
	b.Run("get", func(b *testing.B) { benchReads(b, 1, c, getOne) })
	b.Run("get-by-two", func(b *testing.B) { benchReads(b, 2, c, getOne) })
	if _, ok := c.(batcher); ok {
		b.Run("batch", func(b *testing.B) { benchReads(b, 1, c, getSixteen) })
		b.Run("batch-by-two", func(b *testing.B) { benchReads(b, 2, c, getSixteen) })
	}
	b.Run("scan100", func(b *testing.B) { benchReads(b, 1, c, scanHundred) })
}

func load(c contender, from, n uint64) error {
	var buf [8]byte
	for i := from; i < from+n; i++ {
		if err := c.insert(key(buf[:], i), rowid.ID(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// once runs fn one time on each of some goroutines, which together do ops, and
// reports times per operation, whatever number of runs the benchmark asks for.
func once(b *testing.B, name string, ops, goroutines int, fn func(part int) error) {
	var done []float64
	b.Run(name, func(b *testing.B) {
		if done == nil {
			start := processTime()
			b.ResetTimer()
			together(b, goroutines, fn)
			b.StopTimer()
			done = []float64{float64(b.Elapsed().Nanoseconds()) / float64(ops), float64(processTime()-start) / float64(ops)}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(done[0], "ns")
		b.ReportMetric(done[1], "cpu-ns")
	})
}

func together(b *testing.B, goroutines int, fn func(part int) error) {
	var wg sync.WaitGroup
	for part := range goroutines {
		wg.Go(func() {
			if err := fn(part); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func report(b *testing.B, start int64, ops int) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ops), "ns")
	b.ReportMetric(float64(processTime()-start)/float64(ops), "cpu-ns")
}

func processTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// reader does some reads and returns how many.
type reader func(b *testing.B, c contender, rnd *rand.Rand) int

func benchReads(b *testing.B, goroutines int, c contender, read reader) {
	start := processTime()
	b.ResetTimer()
	together(b, goroutines, func(part int) error {
		mine := c.another()
		rnd := rand.New(rand.NewPCG(uint64(part), 1))
		for n := 0; n < b.N/goroutines; {
			n += read(b, mine, rnd)
		}
		return nil
	})
	b.StopTimer()
	report(b, start, b.N)
}

func getOne(b *testing.B, c contender, rnd *rand.Rand) int {
	var buf [8]byte
	i := rnd.Uint64N(uint64(*keyCount))
	if row, err := c.get(key(buf[:], i)); err != nil || row != rowid.ID(i+1) {
		b.Error(i, row, err)
	}
	return 1
}

func getSixteen(b *testing.B, c contender, rnd *rand.Rand) int {
	var space [16][8]byte
	var keys [16][]byte
	for i := range keys {
		keys[i] = key(space[i][:], rnd.Uint64N(uint64(*keyCount)))
	}
	if rows, err := c.(batcher).getBatch(keys[:]); err != nil || len(rows) != len(keys) {
		b.Error(len(rows), err)
	}
	return len(keys)
}

func scanHundred(b *testing.B, c contender, rnd *rand.Rand) int {
	var buf [8]byte
	if _, err := c.scan(key(buf[:], rnd.Uint64N(uint64(*keyCount))), 100); err != nil {
		b.Error(err)
	}
	return 1
}
