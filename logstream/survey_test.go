package logstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// survey returns the commits of the records that an archive finds, by address.
func survey(t *testing.T, o Options) (map[Address]uint64, *Survey) {
	t.Helper()
	a, err := OpenArchive(scanOptions(o), nil)
	require.NoError(t, err)
	defer a.Close()
	found := map[Address]uint64{}
	s, err := a.Survey(t.Context(), func(c Change) {
		require.Zero(t, found[c.Address])
		found[c.Address] = c.CTS
		r, _, err := a.ReadAt(c.Address, nil)
		require.NoError(t, err)
		require.Equal(t, c.Row, r.Row)
	})
	require.NoError(t, err)
	return found, s
}

// all is what a survey of the whole history finds.
func (h *history) all() map[Address]uint64 {
	found := map[Address]uint64{}
	for cts, list := range h.addresses {
		for _, a := range list {
			found[a] = cts
		}
	}
	return found
}

// TestSurveyFindsWhatAScanDoes in logs of several segments, also when bytes are
// flipped or sectors zeroed: then less, and nothing else.
func TestSurveyFindsWhatAScanDoes(t *testing.T) {
	for _, streams := range []int{1, 3} {
		mem, o, h := manySegments(t, streams)
		h.check(t, o)
		found, s := survey(t, o)
		all := h.all()
		require.Equal(t, all, found)
		require.Empty(t, s.Damage)
		require.Empty(t, s.Torn)
		require.Zero(t, s.Lost(0, 0))
		require.EqualValues(t, 1, s.WholeFrom())
		rng := rand.New(rand.NewPCG(uint64(streams), 5))
		names, err := mem.List(o.Dir)
		require.NoError(t, err)
		for range 25 {
			harmed := mem.CrashClone(nil, vfs.Keep)
			path := joinPath(o.Dir, names[rng.IntN(len(names))])
			b := readFile(t, harmed, path)
			at := rng.IntN(len(b)) &^ (sectorBytes - 1)
			if rng.IntN(2) == 0 {
				clear(b[at : at+sectorBytes])
			} else {
				b[at+rng.IntN(128)] ^= 1 << rng.IntN(8)
			}
			overwrite(t, harmed, path, 0, b)
			less := o
			less.FS = harmed
			found, _ := survey(t, less)
			for a, cts := range found {
				if all[a] != cts {
					require.Equal(t, all[a], cts, a)
				}
			}
			require.Greater(t, len(found), len(all)-40)
		}
	}
}

// TestSurveyLeavesOutDroppedRounds: a round that a recovery has dropped, because
// the other stream had lost its part, is not found, even if the header that says
// where the stream ended then is damaged.
func TestSurveyLeavesOutDroppedRounds(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 2)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, job{id: 1, parts: 1, size: 100}, 0, true))
	require.NoError(t, h.run(l, job{id: 2, parts: 1, size: 100}, 1, true))
	a, _, err := write(l, Request{Shard: 0}, job{id: 3, parts: 1, size: 100}.records(0))
	require.NoError(t, err)
	b, _, err := write(l, Request{Shard: 1}, job{id: 4, parts: 1, size: 100}.records(0))
	require.NoError(t, err)
	l.Publish(b)
	l.Publish(a)
	require.NoError(t, l.Flush(context.Background()))
	closeLog(t, l)
	require.Equal(t, a.Round, b.Round)
	overwrite(t, mem, segmentPath(o.Dir, 1, 0), int64(b.Pos), make([]byte, 64))
	l = h.recover(t, o)
	require.NoError(t, h.run(l, job{id: 10, parts: 2, size: 100}, 0, true))
	require.NoError(t, h.run(l, job{id: 11, parts: 2, size: 100}, 1, true))
	closeLog(t, l)

	found, _ := survey(t, o)
	require.Equal(t, h.all(), found)
	overwrite(t, mem, segmentPath(o.Dir, 0, MinSegmentBytes), 0, make([]byte, sectorBytes))
	found, s := survey(t, o)
	require.Equal(t, h.all(), found)
	require.Len(t, s.Damage, 1)
}

// TestSurveyDoesNotGuess: a frame whose header says something else than it did, and
// whose checksum cannot tell because it is damaged too, counts for nothing.
func TestSurveyDoesNotGuess(t *testing.T) {
	mem, o, h := smallLog(t, 1, 40)
	b := readFile(t, mem, segmentPath(o.Dir, 0, 0))
	tried := 0
	for cts, list := range h.addresses {
		if h.jobs[cts].parts > 1 || len(list) < 2 {
			continue
		}
		record := int(list[0].Position())
		frame := record - frmHeader
		harmed := mem.CrashClone(nil, vfs.Keep)
		changed := append([]byte(nil), b...)
		changed[frame+frmChecksum] ^= 1
		changed[frame+frmCTS] ^= 2
		changed[frame+frmFirst] ^= 2
		changed[record+recRow] ^= 1
		overwrite(t, harmed, segmentPath(o.Dir, 0, 0), 0, changed)
		less := o
		less.FS = harmed
		found, s := survey(t, less)
		for _, a := range list {
			require.Zero(t, found[a])
		}
		require.EqualValues(t, 1, s.Undecided)
		tried++
	}
	require.Greater(t, tried, 5)
}

// vanishing is a file system that loses a file as soon as a folder was listed.
type vanishing struct {
	vfs.FS
	name string
}

func (f vanishing) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	return names, errors.Join(err, f.Remove(f.name))
}

// TestSurveyOfARemovedSegment: a segment may go while the archive is opened. That
// nothing tells any more where the one before it ends is no damage.
func TestSurveyOfARemovedSegment(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	for restart := range 3 {
		l := h.recover(t, o)
		workload(t, l, h, uint64(restart), 1, 3)
		closeLog(t, l)
	}
	second := Position(o.withDefaults().SegmentBytes)
	scan := scanOptions(o)
	scan.From = []Position{2 * second}
	scan.FS = vanishing{mem, joinPath(o.Dir, SegmentName(0, second))}
	a, err := OpenArchive(scan, nil)
	require.NoError(t, err)
	defer a.Close()
	require.Len(t, a.Segments(), 2)
	s, err := a.Survey(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, s.Damage)
}
