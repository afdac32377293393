package indextest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// Sizes of the benchmarks.
const (
	benchEntries = 1_000_000
	benchScan    = 100 // entries a scan delivers
)

// benchKeys are shapes of unique keys: random numbers, composites of a number
// that many share and a random one, and long ones that begin alike.
var benchKeys = []struct {
	name string
	key  func(rng *rand.Rand) []byte
}{
	{"8B", func(rng *rand.Rand) []byte { return []byte(integerKey(rng.Uint64())) }},
	{"16B", func(rng *rand.Rand) []byte { return []byte(integerKey(rng.Uint64N(1000)) + integerKey(rng.Uint64())) }},
	{"24B", func(rng *rand.Rand) []byte { return fmt.Appendf(nil, "customer/id/%012d", rng.Uint64N(1e12)) }},
}

// Benchmark measures the index of a strategy with a million entries, for each
// shape of keys.
func Benchmark(b *testing.B, s index.Strategy) {
	for _, shape := range benchKeys {
		b.Run(shape.name, func(b *testing.B) {
			f := newFixture(b, s)
			keys := make([][]byte, benchEntries)
			for i := range keys {
				keys[i] = shape.key(f.rand)
			}
			w := workload{f, keys, f.create()}
			b.Run("insert", w.insert)
			w.fill(b)
			b.Run("lookup", w.lookup)
			b.Run("lookup-parallel", w.lookupParallel)
			b.Run("scan", func(b *testing.B) { w.scan(b, false) })
			b.Run("scan-reverse", func(b *testing.B) { w.scan(b, true) })
			b.Run("remove-insert", w.removeInsert)
		})
	}
}

// workload is an index of all keys, entry i being (keys[i], row i+1).
type workload struct {
	*fixture
	keys [][]byte
	*session
}

// pick is the i-th of a sequence of places without a pattern for the cache.
func pick(i int) int { return i * 7919 % benchEntries }

func (w workload) fill(b *testing.B) {
	w.h.Pin()
	defer w.h.Unpin()
	for i, key := range w.keys {
		require.NoError(b, w.ix.Insert(w.h, key, row(i+1), nil))
	}
	stats := w.ix.Stats()
	b.Logf("%d entries, %.1f bytes an entry", stats.Entries, float64(stats.Bytes)/float64(stats.Entries))
}

// insert fills an index with all keys, again and again; ns/op is for one
// entry on the way from none to a million.
func (w workload) insert(b *testing.B) {
	var ix index.Index
	for i := range b.N {
		if i%benchEntries == 0 {
			var err error
			ix, err = w.strategy.Create(w.spec)
			require.NoError(b, err)
		}
		j := i % benchEntries
		w.h.Pin()
		_ = ix.Insert(w.h, w.keys[j], row(j+1), nil)
		w.h.Unpin()
	}
	require.NoError(b, ix.Close())
}

func (w workload) lookup(b *testing.B) {
	b.ReportAllocs()
	w.lookups(w.session, b.Loop)
}

func (w workload) lookupParallel(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) { w.lookups(w.fixture.session(w.ix), pb.Next) })
}

func (w workload) lookups(s *session, next func() bool) {
	dst := make([]rowid.ID, 0, 8)
	for i := 0; next(); i++ {
		s.h.Pin()
		dst, _ = s.ix.Lookup(s.h, w.keys[pick(i)], dst[:0])
		s.h.Unpin()
	}
}

func (w workload) scan(b *testing.B, reverse bool) {
	b.ReportAllocs()
	var c index.Cursor
	var batch index.Batch
	for i := 0; b.Loop(); i++ {
		r := index.Range{Lo: w.keys[pick(i)]}
		if reverse {
			r = index.Range{Hi: r.Lo, Reverse: true}
		}
		c.Reset()
		for n, more := 0, true; more && n < benchScan; n += batch.Len() {
			more, _ = w.session.fill(r, &c, &batch)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "scans/s")
}

// removeInsert takes an entry out and puts it back.
func (w workload) removeInsert(b *testing.B) {
	dead := func() bool { return true }
	for i := 0; b.Loop(); i++ {
		j := pick(i)
		w.h.Pin()
		_, _ = w.ix.Remove(w.h, w.keys[j], row(j+1), dead)
		_ = w.ix.Insert(w.h, w.keys[j], row(j+1), nil)
		w.h.Unpin()
	}
}
