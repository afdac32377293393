package indirection

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/alloctest"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// reseal makes the checksums of a file's header, footer and directory right, so
// that hostile content comes through to the code behind them.
func reseal(b []byte, generation uint64) {
	if len(b) < headerBytes+footerBytes {
		return
	}
	h := header{table: testTable, id: testID, generation: generation}
	copy(b, h.encode()[:headerFields])
	hash := newHasher(testID, testTable)
	foot := b[len(b)-footerBytes:]
	copy(foot, footerMagic)
	first, chunks, directory := word64(foot[24:]), word64(foot[32:]), word64(foot[40:])
	for i := range min(chunks, 1000) {
		at := directory + i*chunkBytes
		if at+chunkBytes < at || at+chunkBytes > uint64(len(b)-footerBytes) {
			break
		}
		chunk := b[at:][:chunkBytes]
		binary.LittleEndian.PutUint64(chunk, hash.chunk(generation, first+i, chunk[8:]))
	}
	binary.LittleEndian.PutUint64(foot[footerBytes-8:], hash.footer(generation, foot[:footerBytes-8]))
}

// hostile opens files with right checksums and any content. Nothing it does may
// panic, allocate by their numbers, or give another error than for damage.
func hostile(t *testing.T, older, newer []byte) {
	fs := vfs.NewMem()
	path := func(gen uint64) string { return map[uint64]string{1: "/1", 2: "/2"}[gen] }
	for gen, b := range [][]byte{older, newer} {
		reseal(b, uint64(gen+1))
		require.NoError(t, vfs.WriteFileAtomic(fs, path(uint64(gen+1)), b))
	}
	ok := func(err error) bool {
		if err != nil && !typed(err) {
			require.ErrorIs(t, err, fault.ErrMemoryLimit)
		}
		return err == nil
	}
	g := Generation{Number: 2, Path: "/2", Size: int64(len(newer))}
	im, err := OpenImage(fs, g, path, testID)
	if err != nil {
		require.NotErrorIs(t, err, fault.ErrMemoryLimit)
		return
	}
	ok(im.Verify(t.Context()))
	_, err = im.FreeOrdinals(0, 1000, func(uint64) {})
	ok(err)

	r := newRig(t)
	x := NewArray(r.domain, r.arena, testTable, im)
	r.handle.Pin()
	for i := range uint64(2 * piaPages) {
		ordinal := im.firstPIA<<piaShift + i<<pageShift + i
		old, err := x.Load(ordinal)
		if ok(err) && i%3 == 0 {
			_, err = x.CompareAndSwap(0, ordinal, old, logWord(1))
			ok(err)
		}
	}
	r.handle.Unpin()
	r.domain.Reclaim()
	n := 0
	ok(x.Scan(0, func(uint64, Word) bool { n++; return n < 10_000 }))
	hostileBuild(t, im, ok)
	require.NoError(t, x.Close())
	require.NoError(t, im.Close())
}

func hostileBuild(t *testing.T, im *Image, ok func(error) bool) {
	f, err := vfs.NewMem().Create("/3")
	require.NoError(t, err)
	b := NewBuilder(im, f, 3, testTable, testID)
	for i := range uint64(3) {
		if _, err := b.Change(im.firstPIA<<piaShift+i*500, logWord(i)); err != nil {
			require.True(t, typed(err) || b.err == err)
			return
		}
	}
	_, err = b.Finish(ordinalEnd)
	if err == nil {
		require.NoError(t, f.Close())
		return
	}
	ok(err)
}

func FuzzImage(f *testing.F) {
	s := goldenSeries(f)
	older, newer := readFile(f, s.fs, s.path(1)), readFile(f, s.fs, s.path(2))
	f.Add(older, newer)
	small := smallSeries(f, vfs.NewMem(), "/db")
	f.Add(readFile(f, small.fs, small.path(1)), readFile(f, small.fs, small.path(2)))
	for _, change := range []struct {
		offset int // in the footer
		value  uint64
	}{
		{8, 0}, {16, 0}, {16, 1 << 63}, {24, 1 << 32}, {24, 1<<64 - 1}, {32, 0}, {32, 1}, {32, 1 << 60}, {40, 0}, {40, 1<<64 - 8},
		{48, 0}, {48, 15}, {48, 1 << 40}, {56, 5}, {64, 0}, {64, 1 << 55}, {80, 0}, {80, 4096}, {80, 1<<64 - 4096},
		{88, 0}, {88, 1 << 40}, {96, 1 << 40}, {136, 1}, {144, 0}, {152, 1},
	} {
		hostile := append([]byte(nil), newer...)
		binary.LittleEndian.PutUint64(hostile[len(hostile)-footerBytes+change.offset:], change.value)
		f.Add(older, hostile)
	}
	for _, entry := range [][2]uint64{ // first page of the second directory chunk
		{1, 0}, {1 << 32, 1<<32 | 1}, {1<<32 | 1, 0x41082000 << 32}, {0xffffffff, 65}, {5 << 32, 2 | 2<<10 | 15<<21}, {5 << 32, 2 | 127<<10},
		{5 << 32, 2 | 2<<10 | 2047<<21}, {5 << 32, 1023 | 2<<10}, {5 << 32, 2 | 64<<10 | 1<<21},
	} {
		hostile := append([]byte(nil), newer...)
		at := int(s.image.directory) + chunkBytes + 8
		binary.LittleEndian.PutUint64(hostile[at:], entry[0])
		binary.LittleEndian.PutUint64(hostile[at+8:], entry[1]<<32)
		f.Add(older, hostile)
	}
	f.Fuzz(func(t *testing.T, older, newer []byte) {
		if len(older)+len(newer) > 1<<20 {
			t.Skip()
		}
		alloctest.Bound(t, 8<<20, 100, len(older)+len(newer), func() {
			hostile(t, append([]byte(nil), older...), append([]byte(nil), newer...))
		})
	})
}

// Files whose counts say that no page needs them are read all the same, and builders
// do not let go of them.
func TestWrongCountsDoNoHarm(t *testing.T) {
	s := goldenSeries(t)
	footer := s.image.newest.Size - footerBytes
	for _, offset := range []int64{56 + 32, 56 + 48 + 40} { // pages of place 0, patches of place 1
		content := readFile(t, s.fs, s.path(2))
		content[footer+offset]--
		reseal(content, 2)
		undo := overwrite(t, s.fs, s.path(2), 0, content)
		r := newRig(t)
		im := s.open(t, s.image.newest)
		x := NewArray(r.domain, r.arena, testTable, im)
		for _, ordinal := range []uint64{2, 1<<piaShift + 4} {
			require.Equal(t, s.model[ordinal], r.load(t, x, ordinal))
		}
		require.NoError(t, x.Close())

		for _, touch := range []bool{false, true} {
			err := s.buildFromWrongCounts(t, r, im, touch)
			require.Equal(t, offset == 56+32, err != nil, "a generation that has no pages has one")
		}
		require.NoError(t, im.Close())
		undo()
	}
}

// buildFromWrongCounts builds from an image with a wrong generation table: the
// builder refuses that or counts anew. It changes a row for the value it has.
func (s *series) buildFromWrongCounts(t *testing.T, r *rig, im *Image, touch bool) error {
	f, err := s.fs.Create(s.path(3))
	require.NoError(t, err)
	b := NewBuilder(im, f, 3, testTable, testID)
	if touch {
		_, err = b.Change(2, s.model[2])
	}
	g, finishErr := b.Finish(s.highWater())
	require.NoError(t, f.Close())
	if finishErr == nil {
		require.NoError(t, err)
		next := s.open(t, g)
		require.NoError(t, s.arraySurvives(t, r, next))
		require.NoError(t, next.Close())
	} else {
		require.ErrorIs(t, finishErr, fault.ErrCorrupt)
	}
	require.NoError(t, s.fs.Remove(s.path(3)))
	return finishErr
}

func TestHostileFooters(t *testing.T) {
	const own = 56 + placeBytes // the second place of the table is the file's own
	tests := map[string]struct {
		offset int
		value  uint64
		reason string
	}{
		"size":              {8, 9105, "another file size"},
		"high water":        {16, 1<<48 + 1, "high-water mark"},
		"first PIA":         {24, 1<<32 - 1, "beyond the last ordinal"},
		"chunks":            {32, 1 << 40, "beyond the last ordinal"},
		"more chunks":       {32, 3, "does not fit"},
		"directory":         {40, 4152, "does not fit"},
		"wrapped directory": {40, 1<<64 - 8, "does not fit"},
		"own place":         {48, 16, "own generation"},
		"other own place":   {48, 0, "own generation"},
		"own generation":    {own, 7, "own generation"},
		"own size":          {own + 8, 9105, "own generation"},
		"own patches":       {own + 24, 8192, "overlap"},
		"odd patches":       {56 + 24, 8193, "impossible sizes"},
		"patches in header": {56 + 24, 0, "impossible sizes"},
		"patches outside":   {56 + 24, 1 << 20, "impossible sizes"},
		"huge file":         {56 + 8, 1 << 60, "impossible sizes"},
		"pages":             {56 + 32, 1 << 40, "impossible counts"},
		"patches":           {56 + 40, 1 << 40, "impossible counts"},
		"unused size":       {56 + 8, 0, "not empty"},
		"newer":             {56, 3, "newer than the file"},
	}
	s := goldenSeries(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			content := readFile(t, s.fs, s.path(2))
			binary.LittleEndian.PutUint64(content[len(content)-footerBytes+tt.offset:], tt.value)
			reseal(content, 2)
			undo := overwrite(t, s.fs, s.path(2), 0, content)
			defer undo()
			_, err := OpenImage(s.fs, s.image.newest, s.path, testID)
			require.ErrorIs(t, err, fault.ErrCorrupt)
			require.ErrorContains(t, err, tt.reason)
		})
	}
	var full footer
	full.own = MaxGenerations
	for i := range MaxGenerations + 1 {
		full.places[i] = filePlace{generation: uint64(i), size: headerBytes + footerBytes, patches: headerBytes}
	}
	full.fileSize, full.directory = headerBytes+footerBytes, headerBytes
	require.Equal(t, "too many generations", full.check(full.fileSize, MaxGenerations))
}

func TestHostilePatches(t *testing.T) {
	hash := newHasher(testID, testTable)
	var base, content [pageBytes]byte
	for slot := range 3 {
		putWord(content[:], slot*100, logWord(1))
	}
	good := appendPatch(nil, hash, 1, 2, 3, &base, &content)
	apply := func(change func(b []byte)) string {
		b := append([]byte(nil), good...)
		change(b)
		binary.LittleEndian.PutUint32(b, hash.patch(1, 2, b[4:]))
		page := base
		return applyPatch(b, hash, 1, 2, 3, page[:])
	}
	numbers := patchHeader + 3*wordBytes
	require.Empty(t, apply(func([]byte) {}))
	require.NotEmpty(t, apply(func(b []byte) { b[4] = 2 }))
	require.NotEmpty(t, apply(func(b []byte) { b[numbers+2] = 0 }), "a slot twice")
	require.NotEmpty(t, apply(func(b []byte) { b[numbers+2] = 250 }), "not ascending")
	require.NotEmpty(t, apply(func(b []byte) { b[numbers+5] = 2 }), "slot 712")
	require.NotEmpty(t, applyPatch(good, hash, 2, 2, 3, content[:]), "another generation")
	require.NotEmpty(t, applyPatch(good, hash, 1, 3, 3, content[:]), "another page")
}
