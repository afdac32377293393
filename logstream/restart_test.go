package logstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// commitSize commits one insert whose round takes so many bytes of its stream.
func commitSize(t testing.TB, l *Log, h *history, round int) {
	t.Helper()
	payload := round - roundHeaderBytes(l.geometry.streams) - frmHeader - recHeader
	j := job{id: 1 << 20, parts: 1}
	tk, a, err := write(l, Request{}, []Record{{Kind: Insert, Row: 1, Payload: make([]byte, payload)}})
	require.NoError(t, err)
	h.note(tk.CTS, j, a)
	l.Publish(tk)
	require.NoError(t, l.Acknowledge(context.Background(), tk, true))
	h.promise(tk.CTS)
}

// plainScan counts groups without looking inside.
func plainScan(t testing.TB, o Options) (Tail, int) {
	t.Helper()
	n := 0
	tail, err := Scan(context.Background(), scanOptions(o), func(*Group) error { n++; return nil })
	require.NoError(t, err)
	return tail, n
}

// TestEndsAtTheEdgeOfASegment restarts with the data ending at, just before
// and just behind the end of a segment.
func TestEndsAtTheEdgeOfASegment(t *testing.T) {
	room := MinSegmentBytes - segmentHeaderBytes(1)
	for _, c := range []struct {
		name  string
		sizes []int
		end   Position
		next  Position // where the next incarnation begins
	}{
		{"exactly full", []int{room}, MinSegmentBytes, MinSegmentBytes},
		{"one sector left", []int{room - sectorBytes}, MinSegmentBytes - sectorBytes, MinSegmentBytes},
		{"eight bytes over a sector", []int{room - sectorBytes + 8}, MinSegmentBytes, MinSegmentBytes},
		{"full, then one more", []int{room, 512}, MinSegmentBytes + 1024, 2 * MinSegmentBytes},
		{"one sector left, not enough", []int{room - sectorBytes, 1024}, MinSegmentBytes + 1536, 2 * MinSegmentBytes},
		{"two full", []int{room, room}, 2 * MinSegmentBytes, 2 * MinSegmentBytes},
		{"one sector", []int{512}, 1024, MinSegmentBytes},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem, h := newMem(t), newHistory()
			o := testOptions(mem, 1)
			o.MaxUnflushed = MaxRoundBytes
			l := openLog(t, o, Start{})
			for _, size := range c.sizes {
				commitSize(t, l, h, size)
			}
			closeLog(t, l)
			for restart := range 3 {
				tail, n := plainScan(t, o)
				require.Equal(t, len(c.sizes)+restart, n)
				if restart == 0 {
					require.Equal(t, []Position{c.end}, tail.Ends)
				}
				require.NoError(t, Secure(o, tail))
				l := openLog(t, o, tail.Start)
				commitSize(t, l, h, 512)
				require.Equal(t, c.next+Position(restart*MinSegmentBytes), l.Segments()[len(l.Segments())-1].First)
				closeLog(t, l)
			}
		})
	}
}

// TestHeaderOnlySegments: an incarnation begins in all streams, but its first
// round never comes; again and again.
func TestHeaderOnlySegments(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 2)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, makeJob(1), 0, true))
	closeLog(t, l)
	for range 3 {
		tail := h.check(t, o)
		require.NoError(t, Secure(o, tail))
		l, err := Open(o, tail.Start)
		require.NoError(t, err)
		refuse := Request{Bytes: FrameBytes(0), Validate: refusal{}}
		_, err = l.Reserve(context.Background(), refuse)
		require.ErrorIs(t, err, errRefused)
		mem = mem.CrashClone(nil, vfs.Strict)
		closeLog(t, l)
		o.FS = mem
		again := h.check(t, o)
		require.Equal(t, tail.Incarnation+1, again.Incarnation)
		require.Equal(t, tail.NextRound, again.NextRound)
		require.Equal(t, o.geometry().dataStart(o.geometry().goOn(tail.Ends[0])), again.Ends[0])
	}
	l = h.recover(t, o)
	require.NoError(t, h.run(l, makeJob(2), 1, true))
	closeLog(t, l)
	h.check(t, o)
}

// TestScanFromAWrongPlace: positions that are not the ends of a round.
func TestScanFromAWrongPlace(t *testing.T) {
	_, o, h := manySegments(t, 1)
	tail := h.check(t, o)
	for _, from := range []Position{8, 511, 512 + 8, tail.Proven[0] - 512, tail.Ends[0] + 512, tail.Ends[0] + MinSegmentBytes, 1 << 30} {
		so := scanOptions(o)
		so.From = []Position{from}
		n := 0
		_, err := Scan(context.Background(), so, func(*Group) error { n++; return nil })
		require.Error(t, err, "from %d", from)
		require.Zero(t, n)
	}
	so := scanOptions(o)
	so.From = []Position{0, 0}
	_, err := Scan(context.Background(), so, nil)
	require.ErrorIs(t, err, fault.ErrInvalidOptions)
}

func TestScanOfNothing(t *testing.T) {
	mem := newMem(t)
	o := testOptions(mem, 2)
	before := mem.Ops()
	tail, n := plainScan(t, o)
	require.Zero(t, n)
	require.Equal(t, uint64(1), tail.NextCTS)
	require.Equal(t, uint64(1), tail.NextRound)
	require.Equal(t, []Position{0, 0}, tail.Ends)
	require.Empty(t, tail.Reason)
	require.NoError(t, Secure(o, tail))
	require.Equal(t, before, mem.Ops())

	so := scanOptions(o)
	so.From = []Position{1024, 0}
	_, err := Scan(context.Background(), so, nil)
	require.ErrorIs(t, err, fault.ErrMissingFile)
}

// TestOpenAndScanWriteNothing: only the first Reserve does.
func TestOpenAndScanWriteNothing(t *testing.T) {
	mem, o, h := smallLog(t, 2, 5)
	crashed := mem.CrashClone(nil, vfs.Kill)
	o.FS = crashed
	before := crashed.Ops()
	tail := h.check(t, o)
	l := openLog(t, o, tail.Start)
	_, err := l.Mark(context.Background())
	require.NoError(t, err)
	for cts := range h.jobs {
		_, _, err := l.ReadAt(h.addresses[cts][0], nil)
		require.NoError(t, err)
	}
	require.NoError(t, l.Flush(context.Background()))
	closeLog(t, l)
	require.Equal(t, before, crashed.Ops())
	require.Zero(t, crashed.Handles())
}

// TestSecureWritesTheSameBytesAgain and only behind the proven positions.
func TestSecureWritesTheSameBytesAgain(t *testing.T) {
	mem, o, h := manySegments(t, 1)
	tail := h.check(t, o)
	before := readFile(t, mem, segmentPath(o.Dir, 0, tail.Segments[len(tail.Segments)-1].First))
	var written int64
	o.FS = vfs.WithLog(mem, func(op vfs.Op) {
		if op.Kind == vfs.OpWriteAt {
			written += op.Size
		}
	})
	require.NoError(t, Secure(o, tail))
	require.Equal(t, int64(tail.Ends[0]-tail.Proven[0]), written)
	require.Equal(t, before, readFile(t, mem, segmentPath(o.Dir, 0, tail.Segments[len(tail.Segments)-1].First)))
}

// TestDeadTailStaysDead: rounds that a recovery dropped are not found by any
// later one, also when the new incarnation takes the same positions.
func TestDeadTailStaysDead(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 2)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, job{id: 1, parts: 1, size: 100}, 0, true))
	require.NoError(t, h.run(l, job{id: 2, parts: 1, size: 100}, 1, true))
	kept := h.copy()
	// One round in both streams, of which stream 1 loses its part.
	a, listA, err := write(l, Request{Shard: 0}, job{id: 3, parts: 1, size: 100}.records(0))
	require.NoError(t, err)
	b, listB, err := write(l, Request{Shard: 1}, job{id: 4, parts: 1, size: 100}.records(0))
	require.NoError(t, err)
	h.note(a.CTS, job{id: 3, parts: 1, size: 100}, listA)
	h.note(b.CTS, job{id: 4, parts: 1, size: 100}, listB)
	l.Publish(b)
	l.Publish(a)
	require.NoError(t, l.Flush(context.Background()))
	closeLog(t, l)
	require.Equal(t, a.Round, b.Round)
	h.check(t, o)
	overwrite(t, mem, segmentPath(o.Dir, 1, 0), int64(b.Pos), make([]byte, 64))

	tail := kept.check(t, o)
	require.Equal(t, a.CTS, tail.NextCTS)
	require.Positive(t, tail.Dropped)
	require.Contains(t, tail.Reason, "not complete in stream 1")
	for restart := range 3 {
		l := kept.recover(t, o)
		require.NoError(t, kept.run(l, job{id: uint64(10 + restart), parts: 2, size: 100}, 0, true))
		closeLog(t, l)
		tail := kept.check(t, o)
		require.Zero(t, tail.Dropped, "what is before a new segment does not count as its end")
	}
}

// TestStaleRoundsProveNothing: a round of a dead incarnation that shows up in
// a segment of a newer one, say from blocks that a file system did not clear.
func TestStaleRoundsProveNothing(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	for i := range 2 {
		l := h.recover(t, o)
		require.NoError(t, h.run(l, job{id: uint64(i), parts: 1, size: 100}, 0, true))
		closeLog(t, l)
	}
	tail := h.check(t, o)
	c := newCodec(o.geometry(), o.DatabaseID)
	b := make([]byte, roundHeaderBytes(1))
	for _, incarnation := range []uint64{1, 2} {
		at := tail.Ends[0] + 4096
		stale := roundHeader{incarnation: incarnation, number: 9, participants: 1, first: 9, last: 9, length: frmHeader, ends: []Position{at - 512}}
		stale.put(&c, b, at)
		overwrite(t, mem, segmentPath(o.Dir, 0, MinSegmentBytes), int64(at-MinSegmentBytes), b)
		_, err := h.scan(t, scanOptions(o))
		if incarnation == tail.Incarnation {
			require.ErrorIs(t, err, fault.ErrCorrupt)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestTornSegmentIsSetAside: a segment whose header did not make it, but some
// of its rounds, is kept under another name and goes with its successor.
func TestTornSegmentIsSetAside(t *testing.T) {
	mem, o, h := smallLog(t, 1, 3)
	dead := segmentPath(o.Dir, 0, MinSegmentBytes)
	f, err := mem.Create(dead)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, mem.SyncDir(o.Dir))
	overwrite(t, mem, dead, 5000, []byte("something"))
	l := h.recover(t, o)
	require.NoError(t, h.run(l, makeJob(9), 0, true))
	aside := dead + droppedSuffix + "2"
	require.Equal(t, "something", string(readFile(t, mem, aside)[5000:5009]))
	h.check(t, o)
	for len(l.Segments()) < 3 {
		require.NoError(t, h.run(l, job{id: 7, parts: 1, size: 8000}, 0, true))
	}
	require.ErrorIs(t, l.RemoveSegment(0, l.Segments()[2].First), fault.ErrNotFound)
	require.NoError(t, l.RemoveSegment(0, 0))
	require.NoError(t, l.RemoveSegment(0, MinSegmentBytes))
	require.ErrorIs(t, l.RemoveSegment(0, MinSegmentBytes), fault.ErrNotFound)
	_, err = mem.Stat(aside)
	require.Error(t, err)
	_, err = mem.Stat(dead)
	require.Error(t, err)
	closeLog(t, l)
}

// TestCountersNearTheirMaximum starts close to where counters and positions
// end. Nothing wraps: the log says that it is used up.
func TestCountersNearTheirMaximum(t *testing.T) {
	t.Run("CTS", func(t *testing.T) {
		start := Start{NextCTS: MaxCTS - 2, NextRound: 1 << 60, Incarnation: 1 << 63, Ends: []Position{1 << 40}}
		h := restartUsedUp(t, start, fault.ErrReadOnly)
		require.Len(t, h.jobs, 3)
	})
	t.Run("round", func(t *testing.T) {
		start := Start{NextCTS: 1, NextRound: MaxCTS - 2, Ends: []Position{1 << 40}}
		h := restartUsedUp(t, start, fault.ErrReadOnly)
		require.Len(t, h.jobs, 3)
	})
	t.Run("position", func(t *testing.T) {
		start := Start{NextCTS: 1 << 61, NextRound: 1, Ends: []Position{MaxPosition - 2*MinSegmentBytes}}
		h := restartUsedUp(t, start, fault.ErrNoSpace)
		require.Greater(t, len(h.jobs), 3)
	})
}

func restartUsedUp(t *testing.T, start Start, want error) *history {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, start)
	h.promise(start.NextCTS - 1)
	var err error
	for i := 0; err == nil; i++ {
		err = h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true)
	}
	require.ErrorIs(t, err, want)
	require.NoError(t, l.Failed())
	closeLog(t, l)
	so := scanOptions(o)
	so.From, so.AfterCTS, so.AfterRound = start.Ends, start.NextCTS-1, start.NextRound-1
	tail, err := h.scan(t, so)
	require.NoError(t, err)
	require.Equal(t, start.Incarnation+1, tail.Incarnation)
	for cts, list := range h.addresses {
		require.Equal(t, 0, list[0].Stream(), fmt.Sprint(cts))
	}
	return h
}

var errRefused = fmt.Errorf("refused")

type refusal struct{}

func (refusal) Validate(uint64) error { return errRefused }

// TestOnTheOperatingSystem is a life of several incarnations on real files.
func TestOnTheOperatingSystem(t *testing.T) {
	h := newHistory()
	o := testOptions(vfs.OS(), 2)
	o.Dir = filepath.Join(t.TempDir(), "log")
	for restart := range 3 {
		l := h.recover(t, o)
		workload(t, l, h, uint64(restart), 4, 15)
		for cts, j := range h.jobs {
			if cts <= l.Durable() {
				rec, _, err := l.ReadAt(h.addresses[cts][0], nil)
				require.NoError(t, err)
				requireRecord(t, j.all()[0], rec)
			}
		}
		closeLog(t, l)
	}
	h.check(t, o)
}

// TestIncarnationBegunInSomeStreams: the power is cut at every operation of the
// first commit after a restart, and the log is scanned from a checkpoint that
// describes all of it. Its newest round lies in one stream, older ones in the
// others.
func TestIncarnationBegunInSomeStreams(t *testing.T) {
	for newest := range uint32(3) {
		mem := newMem(t)
		o := testOptions(mem, 3)
		h := newHistory()
		l := openLog(t, o, Start{})
		for _, shard := range []uint32{newest + 1, newest + 2, newest} {
			require.NoError(t, h.run(l, job{id: h.newJob().id, parts: 1, size: 100}, shard%3, true))
		}
		mark, err := l.Mark(context.Background())
		require.NoError(t, err)
		closeLog(t, l)
		l = h.recover(t, o)
		var cuts []*vfs.Mem
		mem.OnOp(func(int, vfs.Op) error {
			cuts = append(cuts, mem.CrashClone(nil, vfs.Strict), mem.CrashClone(nil, vfs.Keep))
			return nil
		})
		before := h.copy()
		require.NoError(t, h.run(l, job{id: h.newJob().id, parts: 1, size: 100}, 0, true))
		mem.OnOp(nil)
		closeLog(t, l)
		require.Greater(t, len(cuts), 10)
		before.jobs, before.addresses = h.jobs, h.addresses
		for i, cut := range cuts {
			so := scanOptions(testOptions(cut, 3))
			so.From, so.Proven, so.AfterCTS, so.AfterRound = mark.Replay, mark.Ends, mark.CTS, mark.Round
			_, err := before.scan(t, so)
			require.NoError(t, err, "newest round in stream %d, cut %d", newest, i)
		}
	}
}

// TestCheckpointAfterRecovery: whatever a crash has left, a checkpoint that is
// taken at once and describes all of it can be recovered from, also after a
// power cut at any operation of the first commit.
func TestCheckpointAfterRecovery(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 9))
	for range 3 {
		h := newHistory()
		cuts := h.cutsOf(t, newMem(t), rng, Start{}, 60)
		for _, c := range cuts {
			l := c.h.recover(t, testOptions(c.mem, 3))
			mark := mustMark(t, l)
			closeLog(t, l)
			tail := c.h.check(t, testOptions(c.mem, 3))
			for _, later := range c.h.cutsOf(t, c.mem, rng, tail.Start, 1) {
				c.h.promised = 0 // the one commit need not be there
				_, err := c.h.scan(t, after(testOptions(later.mem, 3), mark))
				require.NoError(t, err)
			}
		}
	}
}

type powerCut struct {
	mem *vfs.Mem
	h   *history
}

// cutsOf runs jobs on a log of three streams and cuts the power now and then.
func (h *history) cutsOf(t *testing.T, mem *vfs.Mem, rng *rand.Rand, start Start, jobs int) (cuts []powerCut) {
	var mu sync.Mutex // of rng and cuts
	l := openLog(t, testOptions(mem, 3), start)
	mem.OnOp(func(int, vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(3) == 0 {
			promised := h.copy().promised // before the cut, the rest behind it
			cut := powerCut{mem.CrashClone(rng, vfs.CrashMode(rng.IntN(3))), h.copy()}
			cut.h.promised = promised
			cuts = append(cuts, cut)
		}
		return nil
	})
	for range jobs {
		mu.Lock()
		shard := rng.Uint32N(3)
		mu.Unlock()
		require.NoError(t, h.run(l, job{id: h.newJob().id, parts: 1, size: 8 << 10}, shard, true))
	}
	closeLog(t, l)
	mem.OnOp(nil)
	return cuts
}
