package indirection

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
	"github.com/rekindledb/rekindle/rowid"
)

func newBuilder(t testing.TB, prev *Image, gen uint64) *Builder {
	f, err := vfs.NewMem().Create("/f")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return NewBuilder(prev, f, gen, testTable, testID)
}

func TestBuilderRefusesWrongChanges(t *testing.T) {
	tests := []struct {
		name    string
		ordinal uint64
		word    Word
	}{
		{"same ordinal", 100, logWord(1)},
		{"earlier ordinal", 99, logWord(1)},
		{"earlier page", 3, logWord(1)},
		{"no ordinal", rowid.MaxOrdinal + 1, logWord(1)},
		{"memory", 101, FromRef(0x1000)},
		{"too far", 1 << 47, logWord(1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder(t, nil, 1)
			_, err := b.Change(100, logWord(5))
			require.NoError(t, err)
			if _, err = b.Change(tt.ordinal, tt.word); err == nil {
				_, err = b.Finish(rowid.MaxOrdinal)
			}
			require.Error(t, err)
			_, again := b.Finish(1000)
			require.Equal(t, err, again, "the first error stays")
		})
	}
}

// TestBuilderWord: the words of the previous image can be looked at in the same
// order as they are changed, and looking changes nothing.
func TestBuilderWord(t *testing.T) {
	s := smallSeries(t, vfs.NewMem(), "/db")
	b := newBuilder(t, s.image, 9)
	var page [PageSlots]Word
	for p := uint64(0); p<<pageShift < s.image.HighWater(); p++ {
		_, err := s.image.ReadPage(p, &page)
		require.NoError(t, err)
		for slot, want := range page {
			ordinal := p<<pageShift + uint64(slot)
			got, err := b.Word(ordinal)
			require.NoError(t, err)
			require.Equal(t, want, got)
			if slot%3 == 0 {
				old, err := b.Change(ordinal, logWord(7))
				require.NoError(t, err)
				require.Equal(t, want, old)
			}
		}
	}
	_, err := b.Word(0)
	require.Error(t, err, "an ordinal before")

	b = newBuilder(t, nil, 1)
	word, err := b.Word(1 << 20)
	require.NoError(t, err)
	require.Zero(t, word)
}

func TestBuilderRefusesWrongHighWater(t *testing.T) {
	for _, high := range []uint64{0, 100, 1<<48 + 1} {
		b := newBuilder(t, nil, 1)
		_, err := b.Change(100, logWord(5))
		require.NoError(t, err)
		_, err = b.Finish(high)
		require.Error(t, err)
	}
	s := smallSeries(t, vfs.NewMem(), "/db")
	_, err := newBuilder(t, s.image, 9).Finish(3 << pageShift)
	require.Error(t, err, "the previous image has rows above")
}

func TestBuilderRefusesWrongPredecessor(t *testing.T) {
	s := smallSeries(t, vfs.NewMem(), "/db")
	builders := []*Builder{
		newBuilder(t, s.image, 2),
		newBuilder(t, s.image, 1),
		NewBuilder(s.image, s.create(t, "/a"), 3, testTable+1, testID),
		NewBuilder(s.image, s.create(t, "/b"), 3, testTable, [16]byte{1}),
	}
	for _, b := range builders {
		_, err := b.Change(1, logWord(1))
		require.Error(t, err)
		_, err = b.Finish(s.highWater())
		require.Error(t, err)
	}
}

func (s *series) create(t testing.TB, name string) vfs.File {
	f, err := s.fs.Create(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestFinishedBuilder(t *testing.T) {
	b := newBuilder(t, nil, 1)
	_, err := b.Finish(0)
	require.NoError(t, err)
	_, err = b.Change(1, logWord(1))
	require.Error(t, err)
	_, err = b.Finish(0)
	require.Error(t, err)
}

// Damage of the previous image never gets into the next one.
func TestBuilderDoesNotCarryDamageOn(t *testing.T) {
	s := smallSeries(t, vfs.NewMem(), "/db")
	for _, g := range s.image.Generations() {
		content := readFile(t, s.fs, g.Path)
		for offset := int64(0); offset < g.Size; offset += 29 * stride() {
			undo := overwrite(t, s.fs, g.Path, offset, []byte{^content[offset]})
			s.buildFromDamaged(t)
			undo()
		}
	}
}

func (s *series) buildFromDamaged(t testing.TB) {
	im, err := OpenImage(s.fs, s.image.newest, s.path, testID)
	if err != nil {
		require.True(t, typed(err), "%v", err)
		return
	}
	defer func() { require.NoError(t, im.Close()) }()
	f, err := s.fs.Create(s.path(3))
	require.NoError(t, err)
	defer func() {
		require.NoError(t, f.Close())
		require.NoError(t, s.fs.Remove(s.path(3)))
	}()
	b := NewBuilder(im, f, 3, testTable, testID)
	for _, ordinal := range []uint64{10, 3<<pageShift + 1} {
		if old, err := b.Change(ordinal, s.model[ordinal]); err == nil {
			require.Equal(t, s.model[ordinal], old)
		}
	}
	g, err := b.Finish(im.HighWater())
	if err != nil {
		require.True(t, typed(err), "%v", err)
		return
	}
	s.survives(t, newRig(t), g)
}

// Every failing file operation is reported.
func TestBuilderReportsFileErrors(t *testing.T) {
	failed := errors.New("no luck")
	for nth := 1; ; nth++ {
		n := 0
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.Func(func(op vfs.Op) error {
			if op.Kind == vfs.OpWriteAt || op.Kind == vfs.OpSync || op.Kind == vfs.OpDatasync {
				if n++; n == nth {
					return failed
				}
			}
			return nil
		}))
		f, err := fs.Create("/f")
		require.NoError(t, err)
		b := NewBuilder(nil, f, 1, testTable, testID)
		for ordinal := range uint64(200_000) {
			if _, err = b.Change(ordinal, logWord(ordinal)); err != nil {
				break
			}
		}
		g, finishErr := b.Finish(200_000)
		require.NoError(t, f.Close())
		if n < nth {
			require.NoError(t, err)
			require.NoError(t, finishErr)
			require.NoError(t, VerifyGeneration(t.Context(), fs, "/f", g))
			require.Greater(t, nth, 4, "steps were written on the way")
			return
		}
		require.ErrorIs(t, finishErr, failed)
	}
}

// Opening and verifying report every failing file operation and leave nothing
// open.
func TestImageReportsFileErrors(t *testing.T) {
	failed := errors.New("no luck")
	mem := vfs.NewMem()
	s := smallSeries(t, mem, "/db")
	handles := mem.Handles()
	for nth := 1; ; nth++ {
		n, injected := 0, false
		fs := errorfs.Wrap(mem, errorfs.Func(func(op vfs.Op) error {
			if n++; n == nth && op.Kind != vfs.OpClose {
				injected = true
				return failed
			}
			return nil
		}))
		im, err := OpenImage(fs, s.image.newest, s.path, testID)
		if err == nil {
			err = errors.Join(im.Verify(t.Context()), im.Close())
		}
		require.Equal(t, handles, mem.Handles(), "operation %d", nth)
		if n < nth {
			require.NoError(t, err)
			require.Greater(t, nth, 20)
			return
		}
		if injected {
			require.ErrorIs(t, err, failed, "operation %d", nth)
		}
		require.NotErrorIs(t, err, fault.ErrCorrupt)
	}
}
