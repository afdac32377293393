package indirection

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

const testTable rowid.Table = 5

var testID = [16]byte{0xda, 0x7a, 0xba, 5, 0xe1}

// series is a table's image through its generations, beside a model of it.
type series struct {
	fs    vfs.FS
	dir   string
	gen   uint64
	image *Image
	model map[uint64]Word
}

func newSeries(t testing.TB, fs vfs.FS, dir string) *series {
	require.NoError(t, fs.MkdirAll(dir))
	s := &series{fs: fs, dir: dir, model: map[uint64]Word{}}
	t.Cleanup(func() { s.close(t) })
	return s
}

func (s *series) close(t testing.TB) {
	if s.image != nil {
		require.NoError(t, s.image.Close())
		s.image = nil
	}
}

func (s *series) path(gen uint64) string { return fmt.Sprintf("%s/%d.ria", s.dir, gen) }

func (s *series) highWater() uint64 {
	high := uint64(0)
	for ordinal := range s.model {
		high = max(high, ordinal+1)
	}
	return high
}

// build writes the next generation from prev and returns it.
func (s *series) build(t testing.TB, prev *Image, path string, gen uint64, changes map[uint64]Word, highWater uint64) Generation {
	t.Helper()
	f, err := s.fs.Create(path)
	require.NoError(t, err)
	b := NewBuilder(prev, f, gen, testTable, testID)
	for _, ordinal := range slices.Sorted(maps.Keys(changes)) {
		old, err := b.Change(ordinal, changes[ordinal])
		require.NoError(t, err)
		want := s.model[ordinal]
		if prev == nil {
			want = 0
		}
		if old != want {
			require.Equal(t, want, old, "ordinal %d", ordinal)
		}
	}
	g, err := b.Finish(highWater)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, path, g.Path)
	require.NoError(t, VerifyGeneration(t.Context(), s.fs, path, g))
	return g
}

func (s *series) open(t testing.TB, g Generation) *Image {
	t.Helper()
	im, err := OpenImage(s.fs, g, s.path, testID)
	require.NoError(t, err)
	return im
}

// step makes and opens the next generation; a zero word deletes.
func (s *series) step(t testing.TB, changes map[uint64]Word) Generation {
	t.Helper()
	next := maps.Clone(s.model)
	for ordinal, w := range changes {
		if next[ordinal] = w; w == 0 {
			delete(next, ordinal)
		}
	}
	s.gen++
	high := uint64(0)
	for ordinal := range next {
		high = max(high, ordinal+1)
	}
	g := s.build(t, s.image, s.path(s.gen), s.gen, changes, high)
	s.close(t)
	s.model = next
	s.image = s.open(t, g)
	s.removeUnused(t)
	return g
}

// removeUnused removes the files that the image does not refer to.
func (s *series) removeUnused(t testing.TB) {
	names, err := s.fs.List(s.dir)
	require.NoError(t, err)
	used := map[string]bool{}
	for _, g := range s.image.Generations() {
		used[path.Base(g.Path)] = true
	}
	for _, name := range names {
		if !used[name] {
			require.NoError(t, s.fs.Remove(s.dir+"/"+name))
		}
	}
}

// check compares every page of an image with the model.
func (s *series) check(t testing.TB, im *Image) {
	t.Helper()
	pages := map[uint64]*[PageSlots]Word{}
	for ordinal, w := range s.model {
		p := pages[pageOf(ordinal)]
		if p == nil {
			p = new([PageSlots]Word)
			pages[pageOf(ordinal)] = p
		}
		p[slotIn(ordinal)] = w
	}
	var got [PageSlots]Word
	for page := range pageOf(s.highWater()) + piaPages {
		found, err := im.ReadPage(page, &got)
		require.NoError(t, err)
		want, live := pages[page]
		if !live {
			want = new([PageSlots]Word)
		}
		if live != found || *want != got { // require.Equal takes its time
			require.Equal(t, *want, got, "page %d", page)
			require.Equal(t, live, found, "page %d", page)
		}
	}
}

func (s *series) checkFree(t testing.TB, im *Image) {
	t.Helper()
	var want, got []uint64
	for ordinal := im.span().first; ordinal < im.HighWater(); ordinal++ {
		if s.model[ordinal] == 0 {
			want = append(want, ordinal)
		}
	}
	for from := uint64(0); from < im.HighWater(); {
		next, err := im.FreeOrdinals(from, 1000, func(ordinal uint64) { got = append(got, ordinal) })
		require.NoError(t, err)
		require.Greater(t, next, from)
		from = next
	}
	require.Equal(t, want, got)
}

func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomWord(rng *rand.Rand) Word { return logWord(rng.Uint64N(1 << 40)) }

// randomChanges has bursts in single pages, runs, scattered ordinals, deletes.
func (s *series) randomChanges(rng *rand.Rand, space uint64) map[uint64]Word {
	changes := map[uint64]Word{}
	change := func(ordinal uint64) {
		if w := randomWord(rng); rng.IntN(4) > 0 {
			changes[ordinal] = w
		} else {
			changes[ordinal] = 0
		}
	}
	for range rng.IntN(5) {
		page := rng.Uint64N(space) >> pageShift
		for range rng.IntN(200) {
			change(page<<pageShift | rng.Uint64N(PageSlots))
		}
	}
	for range rng.IntN(3) {
		first := rng.Uint64N(space)
		for ordinal := first; ordinal < first+rng.Uint64N(2000); ordinal++ {
			change(ordinal)
		}
	}
	for range rng.IntN(100) {
		change(rng.Uint64N(space))
	}
	if rng.IntN(4) == 0 { // a range goes
		first := rng.Uint64N(space)
		for ordinal := range s.model {
			if ordinal-first < 5000 {
				changes[ordinal] = 0
			}
		}
	}
	if rng.IntN(3) == 0 { // what is there already
		for ordinal, w := range s.model {
			if rng.IntN(50) == 0 {
				changes[ordinal] = w
			}
		}
	}
	return changes
}

func TestImageModel(t *testing.T) {
	rng := newRand(t)
	for _, space := range []uint64{600, 70_000, 200_000} {
		s := newSeries(t, vfs.NewMem(), "/db")
		for range 36 {
			changes := s.randomChanges(rng, space)
			s.step(t, changes)
			require.LessOrEqual(t, len(s.image.Generations()), MaxGenerations)
			require.Equal(t, s.highWater(), s.image.HighWater())
			s.check(t, s.image)
			require.NoError(t, s.image.Verify(t.Context()))
		}
		s.checkFree(t, s.image)
	}
}

// An image made by folding changes and one made from all words read equal.
func TestFoldAndFullScanReadEqual(t *testing.T) {
	rng := newRand(t)
	s := newSeries(t, vfs.NewMem(), "/db")
	for range 12 {
		s.step(t, s.randomChanges(rng, 150_000))
		full := s.path(1000 + s.gen)
		g := s.build(t, nil, full, s.gen, s.model, s.highWater())
		im, err := OpenImage(s.fs, g, func(uint64) string { return full }, testID)
		require.NoError(t, err)
		s.check(t, im)
		s.checkFree(t, im)
		require.Equal(t, s.image.HighWater(), im.HighWater())
		require.NoError(t, im.Verify(t.Context()))
		require.Len(t, im.Generations(), 1)
		require.NoError(t, im.Close())
	}
}

// The same changes give the same bytes.
func TestBuilderIsDeterministic(t *testing.T) {
	rng := newRand(t)
	one, two := newSeries(t, vfs.NewMem(), "/db"), newSeries(t, vfs.NewMem(), "/db")
	for range 12 {
		changes := one.randomChanges(rng, 100_000)
		require.Equal(t, one.step(t, changes), two.step(t, changes))
		require.Equal(t, readFile(t, one.fs, one.path(one.gen)), readFile(t, two.fs, two.path(two.gen)))
	}
}

func readFile(t testing.TB, fs vfs.FS, name string) []byte {
	b, err := vfs.ReadFile(fs, name, 1<<30)
	require.NoError(t, err)
	return b
}

func TestImageSizesAtBoundaries(t *testing.T) {
	for _, last := range []uint64{1, 63, 64, 65, 510, 511, 512, 513, 1023, 1024, 65534, 65535, 65536, 65537, 131072} {
		s := newSeries(t, vfs.NewMem(), "/db")
		changes := map[uint64]Word{}
		for ordinal := uint64(1); ordinal <= last; ordinal++ {
			changes[ordinal] = logWord(ordinal)
		}
		for range 3 {
			s.step(t, changes)
			require.Equal(t, last+1, s.image.HighWater())
			s.check(t, s.image)
			s.checkFree(t, s.image)
			require.NoError(t, s.image.Verify(t.Context()))
			changes = map[uint64]Word{last: logWord(last + 7), last / 2: logWord(3)}
		}
		s.step(t, map[uint64]Word{last: 0})
		s.check(t, s.image)
		require.NoError(t, s.image.Verify(t.Context()))
	}
}

func TestEmptyImages(t *testing.T) {
	s := newSeries(t, vfs.NewMem(), "/db")
	s.step(t, nil)
	require.Zero(t, s.image.HighWater())
	s.check(t, s.image)
	s.step(t, map[uint64]Word{0: 0, 70_000: 0})
	require.Len(t, s.image.Generations(), 1, "a generation without pages is not kept")
	s.step(t, map[uint64]Word{70_000: logWord(1)})
	s.check(t, s.image)
	s.step(t, nil)
	s.check(t, s.image)
	require.Len(t, s.image.Generations(), 2)
	s.step(t, map[uint64]Word{70_000: 0})
	s.check(t, s.image)
	require.Len(t, s.image.Generations(), 1)
	require.NoError(t, s.image.Verify(t.Context()))
}

// What a changed page costs: a patch up to an eighth of it, then a page.
func TestPatchOrPage(t *testing.T) {
	s := newSeries(t, vfs.NewMem(), "/db")
	full := map[uint64]Word{}
	for ordinal := range uint64(PageSlots) {
		full[ordinal] = logWord(ordinal)
	}
	empty := s.step(t, nil).Size
	require.Equal(t, empty+pageBytes+chunkBytes, s.step(t, full).Size)

	some := func(n int) map[uint64]Word {
		changes := map[uint64]Word{}
		for slot := range n {
			changes[uint64(slot)*8] = logWord(uint64(slot) + 1e6)
		}
		return changes
	}
	require.Equal(t, empty+chunkBytes+int64(patchSize(1)), s.step(t, some(1)).Size)
	require.Equal(t, empty+chunkBytes+int64(patchSize(maxPatchSlots)), s.step(t, some(maxPatchSlots)).Size)
	require.Len(t, s.image.Generations(), 2, "patches are cumulative")
	again := s.step(t, map[uint64]Word{0: logWord(0)}).Size
	require.Equal(t, empty+chunkBytes+int64(patchSize(maxPatchSlots-1)), again, "a slot as in the base leaves the patch")
	again = s.step(t, map[uint64]Word{0: logWord(9), 1: logWord(9)}).Size
	require.Equal(t, empty+chunkBytes+pageBytes, again)
	require.Len(t, s.image.Generations(), 1)
	s.check(t, s.image)
}

// Changes that reverse earlier ones need no patch at all.
func TestPatchDisappears(t *testing.T) {
	s := newSeries(t, vfs.NewMem(), "/db")
	full := map[uint64]Word{}
	for ordinal := range uint64(PageSlots) {
		full[ordinal] = logWord(ordinal)
	}
	s.step(t, full)
	s.step(t, map[uint64]Word{5: logWord(1000)})
	s.step(t, map[uint64]Word{5: logWord(5)})
	var r pageReader
	e, err := r.entry(s.image, 0)
	require.NoError(t, err)
	require.False(t, e.hasPatch())
	s.check(t, s.image)
	require.NoError(t, s.image.Verify(t.Context()))
}

// A generation with few pages is given up when there are too many.
func TestGenerationsAreCapped(t *testing.T) {
	s := newSeries(t, vfs.NewMem(), "/db")
	for gen := range uint64(40) {
		changes := map[uint64]Word{}
		for page := range uint64(3) { // pages that no other generation changes
			for slot := range uint64(100) {
				changes[(gen*3+page)<<pageShift+slot] = logWord(gen + slot)
			}
		}
		s.step(t, changes)
		require.Len(t, s.image.Generations(), min(int(gen)+1, MaxGenerations))
		s.check(t, s.image)
	}
	require.NoError(t, s.image.Verify(t.Context()))
}

// Ordinals may begin anywhere, and the directory covers what is in use.
func TestImageOfHighOrdinals(t *testing.T) {
	s := newSeries(t, vfs.NewMem(), "/db")
	first := uint64(rowid.MaxOrdinal - 3<<piaShift)
	s.step(t, map[uint64]Word{first: logWord(1), rowid.MaxOrdinal: logWord(2)})
	require.Equal(t, uint64(rowid.MaxOrdinal+1), s.image.HighWater())
	require.EqualValues(t, 4, s.image.pias)
	s.step(t, map[uint64]Word{first - 5<<piaShift: logWord(3)})
	require.EqualValues(t, 9, s.image.pias)
	for ordinal, want := range s.model {
		var p [PageSlots]Word
		found, err := s.image.ReadPage(pageOf(ordinal), &p)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, want, p[slotIn(ordinal)])
	}
	var p [PageSlots]Word
	found, err := s.image.ReadPage(0, &p)
	require.NoError(t, err)
	require.False(t, found)
	free := 0
	_, err = s.image.FreeOrdinals(0, 1000, func(ordinal uint64) { free++ })
	require.NoError(t, err)
	require.Equal(t, 2*PageSlots, free, "whole pages")
	require.NoError(t, s.image.Verify(t.Context()))
}
