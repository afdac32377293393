package indirection

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
)

const (
	benchRows    = 10_000_000
	benchChanges = 400_000
)

// benchImage writes an image with n rows and, after it, generations with random
// changes.
func benchImage(b *testing.B, n uint64, generations int) *Image {
	dir := b.TempDir()
	fs := vfs.OS()
	path := func(gen uint64) string { return filepath.Join(dir, fmt.Sprint(gen)) }
	rng := rand.New(rand.NewPCG(1, 2))
	var im *Image
	for gen := range uint64(generations + 1) {
		f, err := fs.Create(path(gen))
		require.NoError(b, err)
		builder := NewBuilder(im, f, gen, testTable, testID)
		if gen == 0 {
			for ordinal := uint64(1); ordinal <= n; ordinal++ {
				builder.Change(ordinal, logWord(ordinal))
			}
		} else {
			for _, c := range randomBatch(rng, n) {
				builder.Change(c.Ordinal, c.Word)
			}
		}
		g, err := builder.Finish(n + 1)
		require.NoError(b, err)
		require.NoError(b, f.Close())
		if im != nil {
			require.NoError(b, im.Close())
		}
		im, err = OpenImage(fs, g, path, testID)
		require.NoError(b, err)
	}
	b.Cleanup(func() { require.NoError(b, im.Close()) })
	return im
}

// randomBatch is ascending and without duplicates.
func randomBatch(rng *rand.Rand, n uint64) []Change {
	changes := make([]Change, benchChanges)
	for i := range changes {
		changes[i] = Change{Ordinal: 1 + rng.Uint64N(n), Word: randomWord(rng)}
	}
	slices.SortFunc(changes, func(x, y Change) int { return cmp.Compare(x.Ordinal, y.Ordinal) })
	return slices.CompactFunc(changes, func(x, y Change) bool { return x.Ordinal == y.Ordinal })
}

func BenchmarkBuilder(b *testing.B) {
	im := benchImage(b, benchRows, 1)
	fs := vfs.OS()
	dir := b.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	for b.Loop() {
		b.StopTimer()
		changes := randomBatch(rng, benchRows)
		path := filepath.Join(dir, "next")
		f, err := fs.Create(path)
		require.NoError(b, err)
		b.StartTimer()
		builder := NewBuilder(im, f, 1000, testTable, testID)
		for _, c := range changes {
			builder.Change(c.Ordinal, c.Word)
		}
		_, err = builder.Finish(im.HighWater())
		b.StopTimer()
		require.NoError(b, err)
		require.NoError(b, f.Close())
		require.NoError(b, fs.Remove(path))
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChanges, "ns/change")
}

// BenchmarkReplaySet replays 400 k random updates into an array just opened from
// files in the page cache. best is that of the fastest replay.
func BenchmarkReplaySet(b *testing.B) {
	for _, generations := range []int{0, 2} {
		im := benchImage(b, benchRows, generations)
		for _, batched := range []bool{false, true} {
			b.Run(fmt.Sprintf("patches=%d/batch=%v", generations, batched), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(5, 6))
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					b.StopTimer()
					x, r, changes := replayBatch(b, rng, im)
					start := time.Now()
					b.StartTimer()
					replay(b, x, changes, batched)
					b.StopTimer()
					best = min(best, time.Since(start))
					r.close(b, x)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChanges, "ns/set")
				b.ReportMetric(float64(best.Nanoseconds())/benchChanges, "best-ns/set")
			})
		}
	}
}

func replayBatch(b *testing.B, rng *rand.Rand, im *Image) (*Array, *rig, []Change) {
	r := &rig{arena: arena.New(arena.Config{})}
	r.domain = epoch.NewDomain(r.arena)
	changes := make([]Change, benchChanges)
	for i := range changes {
		changes[i] = Change{Ordinal: 1 + rng.Uint64N(benchRows), Word: randomWord(rng)}
	}
	return NewArray(r.domain, r.arena, testTable, im), r, changes
}

func replay(b *testing.B, x *Array, changes []Change, batched bool) {
	if batched {
		require.NoError(b, x.SetBatch(0, changes))
		return
	}
	for _, c := range changes {
		if err := x.Set(0, c.Ordinal, c.Word); err != nil {
			b.Fatal(err)
		}
	}
}

func (r *rig) close(t testing.TB, x *Array) {
	require.NoError(t, x.Close())
	r.domain.Close()
	require.NoError(t, r.arena.Close())
}

func BenchmarkLoad(b *testing.B) {
	im := benchImage(b, benchRows, 0)
	r := newRig(b)
	memory := r.array(b, testTable, nil)
	for ordinal := uint64(1); ordinal <= benchRows; ordinal++ {
		require.NoError(b, memory.Set(0, ordinal, logWord(ordinal)))
	}
	mapped := r.array(b, testTable, im)
	for name, x := range map[string]*Array{"arena": memory, "mapped": mapped} {
		b.Run(name+"/random", func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 8))
			r.handle.Pin()
			defer r.handle.Unpin()
			for b.Loop() {
				if _, err := x.Load(1 + rng.Uint64N(benchRows)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/one", func(b *testing.B) {
			r.handle.Pin()
			defer r.handle.Unpin()
			for b.Loop() {
				if _, err := x.Load(77); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompareAndSwap(b *testing.B) {
	r := newRig(b)
	x := r.array(b, testTable, nil)
	for ordinal := uint64(1); ordinal <= benchRows; ordinal++ {
		require.NoError(b, x.Set(0, ordinal, logWord(1)))
	}
	b.Run("random", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(7, 8))
		for b.Loop() {
			if ok, _ := x.CompareAndSwap(0, 1+rng.Uint64N(benchRows), logWord(1), logWord(1)); !ok {
				b.Fatal("lost")
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if ok, _ := x.CompareAndSwap(0, 77, logWord(1), logWord(1)); !ok {
				b.Fatal("lost")
			}
		}
	})
}

// Opening does not depend on the rows.
func BenchmarkOpenImage(b *testing.B) {
	for _, rows := range []uint64{100_000, benchRows} {
		im := benchImage(b, rows, 2)
		paths := map[uint64]string{}
		for _, g := range im.Generations() {
			paths[g.Number] = g.Path
		}
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				again, err := OpenImage(vfs.OS(), im.newest, func(gen uint64) string { return paths[gen] }, testID)
				require.NoError(b, err)
				require.NoError(b, again.Close())
			}
		})
	}
}
