package logstream

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
)

// placed is a record with its address.
type placed struct {
	address Address
	row     uint64
}

func (h *history) placed() (list []placed) {
	for cts, j := range h.jobs {
		for i, r := range j.all() {
			list = append(list, placed{h.addresses[cts][i], uint64(r.Row)})
		}
	}
	slices.SortFunc(list, func(a, b placed) int {
		return cmp.Compare(a.address&^(classMask<<classShift), b.address&^(classMask<<classShift))
	})
	return list
}

// TestScanSegment: the segments together hold every record once, in the order
// of their places, whatever incarnation wrote them.
func TestScanSegment(t *testing.T) {
	for _, streams := range []int{1, 2} {
		mem := newMem(t)
		o, h := testOptions(mem, streams), newHistory()
		var l *Log
		for life := range 3 {
			if l = h.recover(t, o); life > 0 {
				require.Greater(t, len(l.Segments()), 2)
			}
			for i := range 300 {
				require.NoError(t, h.run(l, h.newJob(), uint32(i), true))
			}
			if life < 2 {
				closeLog(t, l)
			}
		}
		var found []placed
		for _, s := range l.Segments() {
			require.NoError(t, l.ScanSegment(t.Context(), s.Stream, s.First, func(cts uint64, a Address, r Record) error {
				require.Equal(t, s.First, l.segmentOf(a.Position()))
				require.NotZero(t, cts)
				found = append(found, placed{a, uint64(r.Row)})
				return nil
			}))
		}
		require.Equal(t, h.placed(), found)
		closeLog(t, l)
	}
}

// TestScanDamagedSegment: what is lost in the middle of a segment does not pass
// for its end.
func TestScanDamagedSegment(t *testing.T) {
	mem := newMem(t)
	o, h := testOptions(mem, 1), newHistory()
	l := h.recover(t, o)
	for len(l.Segments()) < 3 {
		require.NoError(t, h.run(l, h.newJob(), 0, true))
	}
	scan := func() error {
		return l.ScanSegment(context.Background(), 0, 0, func(uint64, Address, Record) error { return nil })
	}
	require.NoError(t, scan())
	flip := func(at int64) {
		f, err := mem.Open(segmentPath(o.Dir, 0, 0))
		require.NoError(t, err)
		var b [1]byte
		_, err = f.ReadAt(b[:], at)
		require.NoError(t, err)
		b[0] ^= 1
		_, err = f.WriteAt(b[:], at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	for _, at := range []int64{segFirst, int64(l.dataStart(0)) + rndNumber, MinSegmentBytes / 2} {
		flip(at)
		require.ErrorIs(t, scan(), fault.ErrCorrupt, "offset %d", at)
		flip(at)
	}
	require.NoError(t, scan())
	require.ErrorIs(t, l.ScanSegment(t.Context(), 0, 1<<30, nil), fault.ErrMissingFile)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.ScanSegment(canceled, 0, 0, nil), context.Canceled)
	closeLog(t, l)
}
