package indirection

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// smallSeries has two generations of few bytes: a whole page, a patched page, a
// page that is only a patch.
func smallSeries(t testing.TB, fs vfs.FS, dir string) *series {
	s := newSeries(t, fs, dir)
	changes := map[uint64]Word{PageSlots + 9: logWord(9)}
	for slot := range uint64(100) {
		changes[slot*5] = logWord(slot)
		changes[2<<pageShift+slot] = logWord(slot)
	}
	s.step(t, changes)
	s.step(t, map[uint64]Word{7: logWord(1000), 3<<pageShift + 1: logWord(1)})
	require.Len(t, s.image.Generations(), 2)
	return s
}

// typed reports whether err is what a damaged file may give.
func typed(err error) bool {
	var file *fault.File
	if !errors.As(err, &file) || file.Path == "" {
		return false
	}
	return errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrFormat) || errors.Is(err, fault.ErrForeignFile)
}

// survives opens an image of s that may be damaged and reads everything in all
// ways. Each way gives the right words or a typed error; it returns one of the
// errors.
func (s *series) survives(t testing.TB, r *rig, g Generation) (damage error) {
	im, err := OpenImage(s.fs, g, s.path, testID)
	if err != nil {
		require.True(t, typed(err), "open: %v", err)
		return err
	}
	defer func() { require.NoError(t, im.Close()) }()
	note := func(err error) {
		if err != nil {
			require.True(t, typed(err), "%v", err)
			damage = err
		}
	}
	pages := pageOf(s.highWater()) + 2
	var words [PageSlots]Word
	for page := range pages {
		_, err := im.ReadPage(page, &words)
		note(err)
		for slot, w := range words {
			if ordinal := page<<pageShift + uint64(slot); err == nil && w != s.model[ordinal] {
				t.Fatalf("page %d, slot %d: %v instead of %v", page, slot, w, s.model[ordinal])
			}
		}
	}
	note(s.arraySurvives(t, r, im))
	return damage
}

func (s *series) arraySurvives(t testing.TB, r *rig, im *Image) (damage error) {
	x := NewArray(r.domain, r.arena, testTable, im)
	defer func() { require.NoError(t, x.Close()) }()
	n := 0
	err := x.Scan(0, func(ordinal uint64, w Word) bool {
		if w != s.model[ordinal] {
			t.Fatalf("scan: ordinal %d: %v instead of %v", ordinal, w, s.model[ordinal])
		}
		n++
		return true
	})
	if err != nil {
		damage = err
	} else if n != len(s.model) {
		t.Fatalf("scan: %d of %d rows", n, len(s.model))
	}
	r.handle.Pin()
	defer r.handle.Unpin()
	for ordinal := uint64(0); ordinal < s.highWater()+PageSlots; ordinal += 251 {
		w, err := x.Load(ordinal)
		if err != nil {
			damage = err
		} else if w != s.model[ordinal] {
			t.Fatalf("ordinal %d: %v instead of %v", ordinal, w, s.model[ordinal])
		}
		if _, err := x.CompareAndSwap(0, ordinal, s.model[ordinal], logWord(1)); err != nil {
			damage = err
		}
	}
	return damage
}

// overwrite changes bytes of a file and returns how to undo that.
func overwrite(t testing.TB, fs vfs.FS, name string, offset int64, b []byte) (undo func()) {
	f, err := fs.Open(name)
	require.NoError(t, err)
	before := make([]byte, len(b))
	_, err = f.ReadAt(before, offset)
	require.NoError(t, err)
	_, err = f.WriteAt(b, offset)
	require.NoError(t, err)
	return func() {
		_, err := f.WriteAt(before, offset)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

// stride thins out tests that try every byte where all is slow.
func stride() int64 {
	if invariants.Enabled {
		return 37
	}
	return 1
}

func TestEveryFlippedByte(t *testing.T) {
	s := smallSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	newest := s.image.newest
	for _, g := range s.image.Generations() {
		content := readFile(t, s.fs, g.Path)
		for offset := int64(0); offset < g.Size; offset += stride() {
			if offset > headerFields && offset+256 < headerBytes {
				continue // padding; its end is tried
			}
			undo := overwrite(t, s.fs, g.Path, offset, []byte{content[offset] ^ 1<<(offset%8)})
			damage := s.survives(t, r, newest)
			if offset%16 == 0 {
				require.ErrorIs(t, VerifyGeneration(t.Context(), s.fs, g.Path, g), fault.ErrCorrupt)
				require.ErrorIs(t, s.image.Verify(t.Context()), fault.ErrCorrupt)
			}
			if g.Number == newest.Number && offset >= headerBytes {
				require.Error(t, damage, "offset %d", offset)
			}
			undo()
		}
	}
	require.NoError(t, s.survives(t, r, newest))
}

// Sectors that are zero although they were written, or hold what belongs
// elsewhere.
func TestEveryLostSector(t *testing.T) {
	const sector = 512
	s := smallSeries(t, vfs.NewMem(), "/db")
	r := newRig(t)
	for _, g := range s.image.Generations() {
		content := readFile(t, s.fs, g.Path)
		for offset := int64(0); offset < g.Size; offset += sector {
			n := min(sector, g.Size-offset)
			undo := overwrite(t, s.fs, g.Path, offset, make([]byte, n))
			s.survives(t, r, s.image.newest)
			undo()
			undo = overwrite(t, s.fs, g.Path, offset, content[(offset+sector)%(g.Size-n):][:n])
			s.survives(t, r, s.image.newest)
			undo()
		}
	}
}

func TestEveryLength(t *testing.T) {
	s := smallSeries(t, vfs.NewMem(), "/db")
	for _, g := range s.image.Generations() {
		content := readFile(t, s.fs, g.Path)
		require.NoError(t, s.fs.Remove(g.Path))
		for length := int64(0); length <= g.Size+9; length += stride() {
			if length == g.Size {
				continue
			}
			f, err := s.fs.Create(g.Path)
			require.NoError(t, err)
			_, err = f.WriteAt(append(content, make([]byte, 9)...)[:length], 0)
			require.NoError(t, err)
			_, err = OpenImage(s.fs, s.image.newest, s.path, testID)
			require.ErrorIs(t, err, fault.ErrCorrupt, "length %d", length)
			claimed := s.image.newest
			if g.Number == claimed.Number {
				claimed.Size = length
				_, err = OpenImage(s.fs, claimed, s.path, testID)
				require.ErrorIs(t, err, fault.ErrCorrupt, "length %d", length)
			}
			require.NoError(t, f.Close())
			require.NoError(t, s.fs.Remove(g.Path))
		}
		f, err := s.fs.Create(g.Path)
		require.NoError(t, err)
		_, err = f.WriteAt(content, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.NoError(t, s.survives(t, newRig(t), s.image.newest))
}

// A file that is valid on its own but not the one that belongs here.
func TestFilesThatDoNotBelongTogether(t *testing.T) {
	build := func(s *series, table rowid.Table, id [16]byte, gen uint64, first uint64) []byte {
		f, err := s.fs.Create("/other")
		require.NoError(t, err)
		b := NewBuilder(nil, f, gen, table, id)
		changes := map[uint64]Word{PageSlots + 9: 0}
		for slot := range uint64(100) {
			changes[slot*5] = 0
			changes[2<<pageShift+slot] = 0
		}
		for ordinal := range uint64(4 << pageShift) {
			if _, ok := changes[ordinal]; ok {
				_, err := b.Change(ordinal, logWord(first+ordinal))
				require.NoError(t, err)
			}
		}
		_, err = b.Finish(2<<pageShift + 100)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		content := readFile(t, s.fs, "/other")
		require.NoError(t, s.fs.Remove("/other"))
		return content
	}
	tests := []struct {
		name  string
		table rowid.Table
		id    [16]byte
		gen   uint64
		want  error
	}{
		{"other content", testTable, testID, 1, fault.ErrCorrupt},
		{"other table", testTable + 1, testID, 1, fault.ErrCorrupt},
		{"other database", testTable, [16]byte{1}, 1, fault.ErrForeignFile},
		{"other generation", testTable, testID, 3, fault.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := smallSeries(t, vfs.NewMem(), "/db")
			undo := overwrite(t, s.fs, s.path(1), 0, build(s, tt.table, tt.id, tt.gen, 70))
			defer undo()
			require.ErrorIs(t, s.survives(t, newRig(t), s.image.newest), tt.want)
			require.ErrorIs(t, s.image.Verify(t.Context()), fault.ErrCorrupt)
		})
	}
	s := smallSeries(t, vfs.NewMem(), "/db")
	_, err := OpenImage(s.fs, s.image.newest, s.path, [16]byte{9})
	require.ErrorIs(t, err, fault.ErrForeignFile)
	wrong := s.image.newest
	wrong.Number++
	_, err = OpenImage(s.fs, wrong, s.path, testID)
	require.ErrorIs(t, err, fault.ErrMissingFile)
	_, err = OpenImage(s.fs, wrong, func(uint64) string { return s.path(s.image.newest.Number) }, testID)
	require.ErrorIs(t, err, fault.ErrCorrupt)
}

func TestMissingFiles(t *testing.T) {
	for _, gen := range []uint64{1, 2} {
		fs := vfs.NewMem()
		s := smallSeries(t, fs, "/db")
		require.NoError(t, fs.Remove(s.path(gen)))
		handles := fs.Handles()
		_, err := OpenImage(fs, s.image.newest, s.path, testID)
		require.ErrorIs(t, err, fault.ErrMissingFile)
		var file *fault.File
		require.ErrorAs(t, err, &file)
		require.Equal(t, s.path(gen), file.Path)
		require.Equal(t, handles, fs.Handles(), "nothing stays open")
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	s := smallSeries(t, vfs.NewMem(), "/db")
	undo := overwrite(t, s.fs, s.path(2), 8, []byte{2})
	defer undo()
	_, err := OpenImage(s.fs, s.image.newest, s.path, testID)
	require.ErrorIs(t, err, fault.ErrFormat)
}

// A mapped file that cannot be read is an error of the call, not a crash.
func TestFaultInMappingIsAnError(t *testing.T) {
	if !vfs.MapsFiles || runtime.GOOS != "linux" {
		t.Skip("needs a mapping whose file can be cut")
	}
	s := pagedSeries(t, vfs.OS(), t.TempDir())
	r := newRig(t)
	touched, untouched := r.array(t, testTable, s.image), r.array(t, testTable, s.image)
	require.Equal(t, logWord(3), r.load(t, touched, PageSlots+3))
	for _, g := range s.image.Generations() {
		require.NoError(t, os.Truncate(g.Path, 0))
	}
	r.handle.Pin()
	defer r.handle.Unpin()
	for _, x := range []*Array{touched, untouched} {
		_, err := x.Load(PageSlots + 3)
		require.ErrorIs(t, err, fault.ErrCorrupt)
		var file *fault.File
		require.ErrorAs(t, err, &file)
		require.Equal(t, filepath.Dir(s.path(1)), filepath.Dir(file.Path))
		require.ErrorIs(t, x.Set(0, PageSlots+3, 0), fault.ErrCorrupt)
		require.ErrorIs(t, x.Set(0, 7, 0), fault.ErrCorrupt)
		require.NoError(t, x.Set(0, 9<<piaShift, logWord(1)), "the rest goes on")
	}
	_, err := s.image.ReadPage(0, new([PageSlots]Word))
	require.ErrorIs(t, err, fault.ErrCorrupt)
	require.ErrorIs(t, s.image.Verify(t.Context()), fault.ErrCorrupt)
	require.Panics(t, func() {
		var err error
		defer mapfile.Catch(false, s.image, &err)
		panic("another panic is not swallowed")
	})
}

// TestWordsThatLeadIntoMemory: whatever a file says, also with the right checksum,
// and whatever becomes of it after it was verified, no word of it is taken for the
// address of a version in memory.
func TestWordsThatLeadIntoMemory(t *testing.T) {
	bad := binary.LittleEndian.AppendUint64(nil, 1<<20)
	const at = headerBytes + 2*wordBytes
	t.Run("forged", func(t *testing.T) {
		s, r := newSeries(t, vfs.NewMem(), "/db"), newRig(t)
		s.step(t, fullPage())
		overwrite(t, s.fs, s.path(1), at, bad)
		forgeSums(t, s)
		require.ErrorContains(t, s.image.Verify(t.Context()), "no log address")
		requireRefused(t, r, r.array(t, testTable, s.image))
	})
	t.Run("changed", func(t *testing.T) {
		if !vfs.MapsFiles {
			t.Skip("needs a mapping")
		}
		s, r := newSeries(t, vfs.OS(), t.TempDir()), newRig(t)
		s.step(t, fullPage())
		x := r.array(t, testTable, s.image)
		require.Equal(t, logWord(2), r.load(t, x, 2))
		overwrite(t, s.fs, s.path(1), at, bad)
		requireRefused(t, r, x)
	})
	t.Run("changed below a patch", func(t *testing.T) {
		if !vfs.MapsFiles {
			t.Skip("needs a mapping")
		}
		s, r := newSeries(t, vfs.OS(), t.TempDir()), newRig(t)
		s.step(t, fullPage())
		s.step(t, map[uint64]Word{7: logWord(700)})
		x := r.array(t, testTable, s.image)
		require.Equal(t, logWord(2), r.load(t, x, 2))
		overwrite(t, s.fs, s.path(1), at, bad)
		require.Equal(t, logWord(700), r.load(t, x, 7))
		requireRefused(t, r, x)
	})
}

// fullPage is a page that is no patch.
func fullPage() map[uint64]Word {
	changes := map[uint64]Word{}
	for slot := range uint64(PageSlots) {
		changes[slot] = logWord(slot)
	}
	return changes
}

// forgeSums makes the checksums of the first page and of its directory chunk right
// again, and opens the image anew.
func forgeSums(t *testing.T, s *series) {
	b, err := vfs.ReadFile(s.fs, s.path(1), 1<<20)
	require.NoError(t, err)
	directory := s.image.chunkOffset(0)
	chunk := b[directory : directory+chunkBytes]
	binary.LittleEndian.PutUint32(chunk[8+8:], s.image.hash.page(0, b[headerBytes:headerBytes+pageBytes]))
	overwrite(t, s.fs, s.path(1), int64(directory)+16, chunk[16:20])
	overwrite(t, s.fs, s.path(1), int64(directory), binary.LittleEndian.AppendUint64(nil, s.image.hash.chunk(1, 0, chunk[8:])))
	g := s.image.newest
	require.NoError(t, s.image.Close())
	s.image = s.open(t, g)
}

func requireRefused(t *testing.T, r *rig, x *Array) {
	r.handle.Pin()
	_, err := x.Load(2)
	require.ErrorIs(t, err, fault.ErrCorrupt)
	require.ErrorIs(t, x.Set(0, 3, 0), fault.ErrCorrupt)
	r.handle.Unpin()
	require.ErrorIs(t, x.Scan(0, func(uint64, Word) bool { return true }), fault.ErrCorrupt)
}
