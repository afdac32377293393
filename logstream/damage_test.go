package logstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// smallLog writes some jobs, one a round, and returns what they were.
func smallLog(t *testing.T, streams, jobs int) (*vfs.Mem, Options, *history) {
	t.Helper()
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, streams)
	l := openLog(t, o, Start{})
	for i := range jobs {
		require.NoError(t, h.run(l, job{id: uint64(i), parts: 1 + i%2, size: 40}, uint32(i), true))
	}
	closeLog(t, l)
	return mem, o, h
}

// overwrite replaces bytes of a file.
func overwrite(t testing.TB, fsys vfs.FS, path string, at int64, b []byte) {
	t.Helper()
	f, err := fsys.Open(path)
	require.NoError(t, err)
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func readFile(t testing.TB, fsys vfs.FS, path string) []byte {
	t.Helper()
	f, err := fsys.OpenRead(path)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.True(t, err == nil || errors.Is(err, io.EOF))
	return b
}

// TestFlippedBytes flips every byte of a small log, with two streams every
// third one. Before the last proven
// position that is damage, with the place, or without consequence (padding).
// In the last round it may cut that round. Never is there other data.
func TestFlippedBytes(t *testing.T) {
	for _, streams := range []int{1, 2} {
		mem, o, h := smallLog(t, streams, 4)
		whole := h.check(t, o)
		h.promised = 0
		for s := range streams {
			path := segmentPath(o.Dir, s, 0)
			b := readFile(t, mem, path)[:whole.Ends[s]]
			for at := 0; at < len(b); at += 2*streams - 1 {
				overwrite(t, mem, path, int64(at), []byte{b[at] ^ byte(1+at%255)})
				tail, err := h.scan(t, scanOptions(o))
				overwrite(t, mem, path, int64(at), b[at:at+1])
				switch {
				case err == nil:
					cut := tail.NextCTS < whole.NextCTS
					require.False(t, cut && Position(at) < whole.Proven[s], "stream %d, byte %d is lost in silence", s, at)
				default:
					requireFileError(t, err, path)
				}
			}
		}
		require.Equal(t, whole, h.check(t, o))
	}
}

// requireFileError wants an error that names a file of the log.
func requireFileError(t testing.TB, err error, path string) {
	t.Helper()
	var file *fault.File
	require.ErrorAs(t, err, &file)
	require.NotEmpty(t, file.Reason)
	require.Contains(t, []string{path, filepath.Dir(path)}, file.Path)
}

func TestLostSectorIsDamageOrTheEnd(t *testing.T) {
	mem, o, h := smallLog(t, 1, 8)
	whole := h.check(t, o)
	h.promised = 0
	path := segmentPath(o.Dir, 0, 0)
	b := readFile(t, mem, path)
	for at := int64(0); at < int64(whole.Ends[0]); at += sectorBytes {
		overwrite(t, mem, path, at, make([]byte, sectorBytes))
		tail, err := h.scan(t, scanOptions(o))
		if at < int64(whole.Proven[0]) {
			require.ErrorIs(t, err, fault.ErrCorrupt)
			var file *fault.File
			require.ErrorAs(t, err, &file)
			require.Equal(t, path, file.Path)
			require.LessOrEqual(t, file.Offset, at)
			require.GreaterOrEqual(t, file.Offset+file.Length, min(at+sectorBytes, int64(whole.Proven[0])))
		} else {
			require.NoError(t, err)
			require.Equal(t, whole.NextRound-1, tail.NextRound)
			require.Equal(t, whole.Proven, tail.Ends)
		}
		overwrite(t, mem, path, at, b[at:at+sectorBytes])
	}
}

func TestDamageInOneStreamIsProvenByAnother(t *testing.T) {
	mem, o, h := smallLog(t, 2, 2) // job 0 in stream 0, then job 1 in both parts in stream 1
	path := segmentPath(o.Dir, 0, 0)
	start := int64(segmentHeaderBytes(2))
	overwrite(t, mem, path, start, make([]byte, sectorBytes))
	_, err := h.scan(t, scanOptions(o))
	require.ErrorIs(t, err, fault.ErrCorrupt)
	require.ErrorContains(t, err, path)
}

func TestDamageIsFoundThroughTheCheckpoint(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, makeJob(2), 0, true))
	mark, err := l.Mark(context.Background())
	require.NoError(t, err)
	closeLog(t, l)
	overwrite(t, mem, segmentPath(o.Dir, 0, 0), int64(segmentHeaderBytes(1)), make([]byte, sectorBytes))

	so := scanOptions(o)
	h.promised = 0
	_, err = h.scan(t, so)
	require.NoError(t, err, "nothing says that the round was there")
	so.Proven = mark.Ends
	_, err = h.scan(t, so)
	require.ErrorIs(t, err, fault.ErrCorrupt)
}

// manySegments is a log of several segments.
func manySegments(t *testing.T, streams int) (*vfs.Mem, Options, *history) {
	t.Helper()
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, streams)
	l := openLog(t, o, Start{})
	for i := range 40 * streams {
		require.NoError(t, h.run(l, job{id: uint64(i), parts: 1, size: 8000}, uint32(i), true))
	}
	closeLog(t, l)
	return mem, o, h
}

func TestMissingSegmentIsNamed(t *testing.T) {
	for _, streams := range []int{1, 2} {
		mem, o, h := manySegments(t, streams)
		tail := h.check(t, o)
		for _, s := range tail.Segments {
			clone := mem.CrashClone(nil, vfs.Keep)
			path := segmentPath(o.Dir, s.Stream, s.First)
			require.NoError(t, clone.Remove(path))
			oc := o
			oc.FS = clone
			h.promised = 0
			_, err := h.scan(t, scanOptions(oc))
			newest := s.End > tail.Proven[s.Stream]
			if newest && streams == 1 {
				continue // only the checkpoint could know
			}
			require.ErrorIs(t, err, fault.ErrMissingFile)
			require.ErrorContains(t, err, path)
		}
	}
}

func TestSegmentsOfOthersAreRefused(t *testing.T) {
	mem, o, h := manySegments(t, 1)
	path := segmentPath(o.Dir, 0, MinSegmentBytes)

	t.Run("other database", func(t *testing.T) {
		so := scanOptions(o)
		so.DatabaseID[3]++
		_, err := h.scan(t, so)
		require.ErrorIs(t, err, fault.ErrForeignFile)
	})
	t.Run("newer format", func(t *testing.T) {
		clone := mem.CrashClone(nil, vfs.Keep)
		overwrite(t, clone, path, segVersion, []byte{formatVersion + 1})
		oc := o
		oc.FS = clone
		_, err := h.scan(t, scanOptions(oc))
		require.ErrorIs(t, err, fault.ErrFormat)
		require.ErrorContains(t, err, path)
	})
	t.Run("copy of the database", func(t *testing.T) {
		tail := h.check(t, o)
		fork := func() (*vfs.Mem, Options) {
			clone := mem.CrashClone(nil, vfs.Keep)
			oc := o
			oc.FS = clone
			l := openLog(t, oc, tail.Start)
			for i := range 30 {
				require.NoError(t, h.copy().run(l, job{id: uint64(i), parts: 1, size: 8000}, 0, true))
			}
			closeLog(t, l)
			return clone, oc
		}
		a, oa := fork()
		b, _ := fork()
		first := oa.geometry().goOn(tail.Ends[0])
		swapped := segmentPath(o.Dir, 0, first+MinSegmentBytes)
		overwrite(t, a, swapped, 0, readFile(t, b, swapped))
		_, err := Scan(context.Background(), scanOptions(oa), func(*Group) error { return nil })
		require.ErrorIs(t, err, fault.ErrForeignFile)
	})
	t.Run("other number of streams", func(t *testing.T) {
		so := scanOptions(o)
		so.Streams = 2
		_, err := h.scan(t, so)
		require.ErrorIs(t, err, fault.ErrForeignFile)
	})
	t.Run("other segment size", func(t *testing.T) {
		so := scanOptions(o)
		so.SegmentBytes *= 2
		_, err := h.scan(t, so)
		require.ErrorIs(t, err, fault.ErrForeignFile)
	})
}

func TestShortSegment(t *testing.T) {
	mem, o, h := manySegments(t, 1)
	tail := h.check(t, o)
	h.promised = 0
	last := tail.Segments[len(tail.Segments)-1]
	cut := func(first Position, size int64) error {
		clone := mem.CrashClone(nil, vfs.Keep)
		f, err := clone.Open(segmentPath(o.Dir, 0, first))
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		require.NoError(t, f.Close())
		oc := o
		oc.FS = clone
		_, err = h.scan(t, scanOptions(oc))
		return err
	}
	require.NoError(t, cut(last.First, int64(tail.Ends[0]-last.First)), "exactly the data")
	require.NoError(t, cut(last.First, int64(tail.Ends[0]-last.First)-1), "the last round is torn")
	require.NoError(t, cut(last.First, int64(tail.Proven[0]-last.First)))
	require.NoError(t, cut(last.First, int64(tail.Proven[0]-last.First)-sectorBytes), "so are the last two, with the proof for the first of them")
	require.ErrorIs(t, cut(0, 30000), fault.ErrCorrupt)
	require.ErrorIs(t, cut(0, 100), fault.ErrCorrupt)
	require.ErrorIs(t, cut(0, 0), fault.ErrCorrupt)
}

// TestRandomDamage overwrites random ranges: whatever happens, no wrong data
// come out, and what is lost in silence lies behind the proven positions.
func TestRandomDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	mem, o, h := manySegments(t, 2)
	whole := h.check(t, o)
	h.promised = 0
	for range 100 {
		clone := mem.CrashClone(nil, vfs.Keep)
		s := whole.Segments[rng.IntN(len(whole.Segments))]
		at := rng.IntN(MinSegmentBytes)
		b := make([]byte, 1+rng.IntN(MinSegmentBytes-at))
		for i := range b {
			b[i] = byte(rng.Uint32() * rng.Uint32N(2))
		}
		overwrite(t, clone, segmentPath(o.Dir, s.Stream, s.First), int64(at), b)
		oc := o
		oc.FS = clone
		tail, err := h.scan(t, scanOptions(oc))
		if err != nil {
			var file *fault.File
			require.ErrorAs(t, err, &file, fmt.Sprint(err))
			continue
		}
		if s.First+Position(at) < whole.Proven[s.Stream] && tail.NextRound < whole.NextRound {
			require.Equal(t, whole.NextRound-1, tail.NextRound)
		}
	}
}

func TestErrorsOfReadingAreNotTheEnd(t *testing.T) {
	_, o, _ := smallLog(t, 1, 4)
	reading := errorfs.Kind(vfs.OpReadAt, vfs.OpOpenRead, vfs.OpList)
	for n := 1; ; n++ {
		inj := errorfs.Count(errorfs.If(errorfs.All(reading, errorfs.OnNth(n)), syscall.EIO))
		oc := o
		oc.FS = errorfs.Wrap(o.FS, inj)
		_, err := Scan(context.Background(), scanOptions(oc), func(g *Group) error {
			return g.Records(func(Address, Record) error { return nil })
		})
		if inj.Injected() == 0 {
			require.NoError(t, err)
			require.Greater(t, n, 5)
			return
		}
		require.ErrorIs(t, err, errorfs.ErrInjected)
	}
}
