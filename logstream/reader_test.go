package logstream

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// written is a durable log and all its records.
func written(t *testing.T, streams, jobs int) (*Log, *vfs.Mem, map[Address]Record) {
	t.Helper()
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, streams)
	o.SegmentBytes, o.MaxUnflushed = 4<<20, 0
	l := openLog(t, o, Start{})
	all := make(map[Address]Record)
	for i := range jobs {
		j := job{id: uint64(i), parts: 1, size: []int{10, 300, 5000}[i%3]}
		require.NoError(t, h.run(l, j, uint32(i), false))
	}
	large := []Record{{Kind: Insert, Payload: make([]byte, MaxClassBytes)}, {Kind: Image, Payload: []byte{1}}}
	tk, list, err := write(l, Request{}, large)
	require.NoError(t, err)
	l.Publish(tk)
	for i, a := range list {
		all[a] = large[i]
	}
	for cts, j := range h.jobs {
		for i, a := range h.addresses[cts] {
			all[a] = j.all()[i]
		}
	}
	require.NoError(t, l.Flush(context.Background()))
	return l, mem, all
}

func ascending(all map[Address]Record) []Address {
	var list []Address
	for a := range all {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Address) int {
		if d := a.Stream() - b.Stream(); d != 0 {
			return d
		}
		return int(a.Position()) - int(b.Position())
	})
	return list
}

func TestReadAtAndReader(t *testing.T) {
	l, mem, all := written(t, 2, 900)
	r := NewReader(l)
	var buf []byte
	list := ascending(all)
	for round := range 2 {
		for _, a := range list {
			rec, grown, err := l.ReadAt(a, buf)
			require.NoError(t, err)
			requireRecord(t, all[a], rec)
			buf = grown
			rec, err = r.Read(a)
			require.NoError(t, err)
			requireRecord(t, all[a], rec)
		}
		if round == 0 {
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
	}
	closeLog(t, l)
	require.Zero(t, mem.Handles())
}

// TestReaderReadsAhead: many records cost few reads in ascending order.
func TestReaderReadsAhead(t *testing.T) {
	l, _, all := written(t, 1, 900)
	reads := 0
	l.streams[0].(*segmentStream).fs = vfs.WithLog(l.opt.FS, func(op vfs.Op) {
		if op.Kind == vfs.OpReadAt {
			reads++
		}
	})
	l.streams[0].(*segmentStream).drop(0)
	r := NewReader(l)
	for _, a := range ascending(all) {
		_, err := r.Read(a)
		require.NoError(t, err)
	}
	require.Less(t, reads, 20)
	closeLog(t, l)
}

func TestBadAddresses(t *testing.T) {
	l, mem, all := written(t, 1, 10)
	end := Position(l.durableEnds[0].Load())
	path := segmentPath(l.opt.Dir, 0, 0)
	bad := []Address{0, 1, MakeAddress(1, 1024, 100), MakeAddress(63, 1024, 100), MakeAddress(0, end+1<<20, 100),
		MakeAddress(0, MaxPosition-8, 100)}
	for a := range all { // a record, but not at its beginning; a bound that is too small
		bad = append(bad, a+1, MakeAddress(0, a.Position(), 8), MakeAddress(0, a.Position()+8, MaxClassBytes+8))
	}
	r := NewReader(l)
	for _, a := range bad {
		_, _, err := l.ReadAt(a, nil)
		require.ErrorIs(t, err, fault.ErrCorrupt, a.String())
		_, err = r.Read(a)
		require.ErrorIs(t, err, fault.ErrCorrupt, a.String())
	}
	for a, rec := range all {
		overwrite(t, mem, path, int64(a.Position())+recHeader+int64(len(rec.Keys)+len(rec.Payload))-1, []byte{0xEE})
		_, _, err := l.ReadAt(a, nil)
		require.ErrorIs(t, err, fault.ErrCorrupt)
		require.ErrorContains(t, err, path)
	}
	closeLog(t, l)
}

func TestReadBeforeDurableIsABug(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs invariant checks")
	}
	fsys := countSyncs(newMem(t))
	l := openLog(t, testOptions(fsys, 1), Start{})
	put(t, l, 10)
	settleSpace(t, l)
	require.NoError(t, l.Flush(context.Background()))
	release := fsys.hold()
	tk, list, err := write(l, Request{}, []Record{{Kind: Insert}})
	require.NoError(t, err)
	l.Publish(tk)
	require.Panics(t, func() { _, _, _ = l.ReadAt(list[0], nil) })
	release()
	closeLog(t, l)
}

// TestRemoveWhileReading: readers of a segment that is removed end well, later
// ones learn that it is gone.
func TestRemoveWhileReading(t *testing.T) {
	mem, h := newMem(t), newHistory()
	l := openLog(t, testOptions(mem, 1), Start{})
	for i := range 100 {
		require.NoError(t, h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true))
	}
	segments := l.Segments()
	require.Greater(t, len(segments), 4)
	gone := segments[len(segments)-2].End
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 0))
			var buf []byte
			for range 3000 {
				cts := 1 + rng.Uint64N(uint64(len(h.jobs)))
				a := h.addresses[cts][0]
				rec, grown, err := l.ReadAt(a, buf)
				buf = grown
				if err != nil {
					require.ErrorIs(t, err, fault.ErrMissingFile)
					require.Less(t, a.Position(), gone)
					continue
				}
				requireRecord(t, h.jobs[cts].records(0)[0], rec)
			}
		})
	}
	for _, s := range segments[:len(segments)-1] {
		require.NoError(t, l.RemoveSegment(0, s.First))
	}
	require.ErrorIs(t, l.RemoveSegment(0, segments[len(segments)-1].First), fault.ErrNotFound)
	require.ErrorIs(t, l.RemoveSegment(1, 0), fault.ErrNotFound)
	wg.Wait()
	require.Len(t, l.Segments(), 1)
	closeLog(t, l)
	require.Zero(t, mem.Handles())
}

// TestManySegmentsFewFiles: the number of open files is bounded.
func TestManySegmentsFewFiles(t *testing.T) {
	mem := newMem(t)
	l := openLog(t, testOptions(mem, 1), Start{})
	var list []Address
	for range 100 {
		tk, a, err := write(l, Request{}, []Record{{Kind: Insert, Payload: make([]byte, 40_000)}})
		require.NoError(t, err)
		l.Publish(tk)
		list = append(list, a...)
	}
	require.NoError(t, l.Flush(context.Background()))
	require.Len(t, l.Segments(), len(list))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		_, _, err := l.ReadAt(list[rng.IntN(len(list))], nil)
		require.NoError(t, err)
		require.LessOrEqual(t, mem.Handles(), maxOpenSegments+4)
	}
	closeLog(t, l)
	require.Zero(t, mem.Handles())
}

// TestFewDescriptors: where the process can open only a few files more, reading does
// not fail for those that are open ahead of need.
func TestFewDescriptors(t *testing.T) {
	mem := newMem(t)
	few := errorfs.Toggle(errorfs.Func(func(op vfs.Op) error {
		if op.Kind == vfs.OpOpenRead && mem.Handles() > 8 {
			return syscall.EMFILE
		}
		return nil
	}))
	h := newHistory()
	l := openLog(t, testOptions(errorfs.Wrap(mem, few), 1), Start{})
	for len(l.Segments()) < 20 {
		require.NoError(t, h.run(l, job{id: h.newJob().id, parts: 1, size: 16 << 10}, 0, true))
	}
	few.On()
	for range 2 {
		for _, addresses := range h.addresses {
			_, _, err := l.ReadAt(addresses[0], nil)
			require.NoError(t, err)
		}
	}
	closeLog(t, l)
	require.Zero(t, mem.Handles())
}

// TestRemovalIsTriedAgain: a segment that could not be removed is still listed.
func TestRemovalIsTriedAgain(t *testing.T) {
	var broken atomic.Bool
	fsys := errorfs.Wrap(newMem(t), errorfs.Func(func(op vfs.Op) error {
		if broken.Load() && op.Kind == vfs.OpRemove {
			return syscall.EIO
		}
		return nil
	}))
	h := newHistory()
	l := openLog(t, testOptions(fsys, 1), Start{})
	for len(l.Segments()) < 4 {
		require.NoError(t, h.run(l, job{id: h.newJob().id, parts: 1, size: 16 << 10}, 0, true))
	}
	before := l.Segments()
	broken.Store(true)
	require.ErrorIs(t, l.RemoveSegment(0, before[1].First), syscall.EIO)
	require.Equal(t, before, l.Segments())
	broken.Store(false)
	require.NoError(t, l.RemoveSegment(0, before[1].First))
	require.Len(t, l.Segments(), len(before)-1)
	closeLog(t, l)
}
