package chainindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
)

// sized are layers in files that say they have so many entries, newest first.
func sized(sizes ...int64) (files []*layer) {
	for _, n := range sizes {
		l := &layer{file: &mappedFile{}}
		l.count.Store(n)
		files = append(files, l)
	}
	return files
}

func TestFilesToMerge(t *testing.T) {
	for _, c := range []struct {
		fresh int64
		files []int64
		want  int
	}{
		{10, nil, 0},
		{10, []int64{20}, 1},
		{10, []int64{1000}, 0},
		{10, []int64{20, 60}, 2},
		{10, []int64{20, 10_000}, 1},
		{10, []int64{10_000, 20}, 0},
		{1, []int64{100, 1000, 10_000, 100_000, 1_000_000}, 1}, // the cap
		{1, []int64{0, 0}, 2},
		{0, []int64{0, 5}, 1},
	} {
		require.Equal(t, c.want, filesToMerge(c.fresh, sized(c.files...)), "%+v", c)
	}
}

func TestDamagedFilesAreNotMerged(t *testing.T) {
	files := sized(10, 10, 10)
	files[1].file.damaged.Store(true)
	require.Equal(t, 1, filesToMerge(10, files))
	files = sized(10, 10, 10, 10, 10)
	files[0].file.damaged.Store(true)
	require.Equal(t, 1, filesToMerge(10, files), "the cap comes first")
}

// However large checkpoints are beside the index, files keep to the cap and
// entries are not written over and over again.
func TestPlanInTheLongRun(t *testing.T) {
	for _, c := range []struct {
		index, fresh int64
		most         float64
	}{
		{1_000_000, 100, 35}, {1_000_000, 1000, 20}, {1_000_000, 100_000, 6}, {1_000_000, 1_000_000, 4},
	} {
		sizes := []int64{c.index}
		written, fresh, files := 0.0, 0.0, 0
		const rounds = 5000
		for range rounds {
			n := c.fresh/2 + rand.Int64N(c.fresh)
			k := filesToMerge(n, sized(sizes...))
			sum := n
			for _, size := range sizes[:k] {
				sum += size
			}
			if k == len(sizes) { // updates: the index does not grow
				sum = c.index
			}
			sizes = append([]int64{sum}, sizes[k:]...)
			require.LessOrEqual(t, len(sizes), maxFiles)
			written += float64(sum)
			fresh += float64(n)
			files += len(sizes)
		}
		t.Logf("%+v: every entry is written %.1f times, %.1f files", c, written/fresh, float64(files)/rounds)
		require.Less(t, written/fresh, c.most)
	}
}

// Merges that lag, checkpoints that are abandoned, snapshots: the chain keeps
// to its caps.
func TestCaps(t *testing.T) {
	r := newRig(t)
	x := r.create()
	x.plan = lagging
	s := r.session(x)
	longest := 0
	for n := range 300 {
		s.insert(fmt.Sprint("key ", n), 1)
		capture, create := r.begin(x)
		longest = max(longest, x.Layers())
		require.LessOrEqual(t, x.Layers(), maxLayers)
		if n%4 != 0 {
			capture.Abandon()
			continue
		}
		files, err := capture.Write(context.Background(), create)
		require.NoError(t, err)
		require.LessOrEqual(t, len(files), maxFiles)
		capture.Published()
		require.LessOrEqual(t, x.Layers(), 1+maxFiles)
	}
	require.Greater(t, longest, 1+maxFiles, "the test comes near the cap")
	require.Len(t, s.lookup("key 0"), 1)
	require.EqualValues(t, 300, x.Stats().Entries)
}

// Without memory for making one layer of frozen ones, checkpoints fail; the
// chain does not grow.
func TestCapWithoutMemory(t *testing.T) {
	r := newLimitedRig(t, 4<<20)
	x := r.create()
	s := r.session(x)
	var full error
	for n := 0; full == nil; n++ {
		full = s.tryInsert(fmt.Sprint("key ", n, strings.Repeat(" of some length", 15)), 1, nil)
		if n%1000 == 999 {
			capture, err := x.BeginCheckpoint(context.Background(), uint64(n))
			if err != nil {
				require.ErrorIs(t, err, fault.ErrMemoryLimit)
				continue
			}
			capture.Abandon()
		}
	}
	require.ErrorIs(t, full, fault.ErrMemoryLimit)
	for n := range uint64(20) {
		capture, err := x.BeginCheckpoint(context.Background(), 1<<40+n)
		require.LessOrEqual(t, x.Layers(), maxLayers)
		if err != nil {
			require.ErrorIs(t, err, fault.ErrMemoryLimit)
			continue
		}
		capture.Abandon()
	}
	require.Len(t, s.lookup("key 0"+strings.Repeat(" of some length", 15)), 1)
}
