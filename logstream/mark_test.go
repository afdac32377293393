package logstream

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

func mustMark(t testing.TB, l *Log) Mark {
	t.Helper()
	m, err := l.Mark(context.Background())
	require.NoError(t, err)
	return m
}

// after is a scan of what is newer than a mark.
func after(o Options, m Mark) ScanOptions {
	so := scanOptions(o)
	so.From, so.Proven, so.AfterCTS, so.AfterRound = m.Replay, m.Ends, m.CTS, m.Round
	return so
}

// putPart writes and publishes one part of a group.
func putPart(t testing.TB, l *Log, j job, p int, first uint64) (Ticket, []Address) {
	t.Helper()
	tk, list, err := write(l, Request{First: first, Part: p + 1, Parts: j.parts}, j.records(p))
	require.NoError(t, err)
	l.Publish(tk)
	return tk, list
}

func TestMarkIsTheNewestDurableRound(t *testing.T) {
	mem, h := newMem(t), newHistory()
	l := openLog(t, testOptions(mem, 2), Start{})
	m := mustMark(t, l)
	require.Equal(t, Mark{Replay: []Position{0, 0}, Ends: []Position{0, 0}}, m)
	require.NoError(t, h.run(l, job{id: 1, parts: 1}, 1, true))
	m = mustMark(t, l)
	require.Equal(t, uint64(1), m.CTS)
	require.Equal(t, uint64(1), m.Round)
	require.Equal(t, m.Ends, m.Replay)
	require.Equal(t, m, mustMark(t, l))
	require.NoError(t, h.run(l, job{id: 2, parts: 1}, 1, false))
	m = mustMark(t, l)
	require.Equal(t, uint64(2), m.CTS, "it flushes when nothing newer is durable")
	closeLog(t, l)
}

// TestReplayBeginsBeforeOpenGroups in all states of a group.
func TestReplayBeginsBeforeOpenGroups(t *testing.T) {
	ctx := context.Background()
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 2)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, job{id: 1, parts: 1}, 0, true))
	start := mustMark(t, l).Ends

	group := job{id: 2, parts: 3, size: 100}
	one, a := putPart(t, l, group, 0, 0)
	require.NoError(t, h.run(l, job{id: 3, parts: 1}, 1, true))
	m := mustMark(t, l)
	require.Equal(t, start, m.Replay, "part 1 is durable")
	require.Greater(t, m.Ends[0], start[0])

	two, b := putPart(t, l, group, 1, one.CTS)
	require.NoError(t, l.Flush(ctx))
	m2 := mustMark(t, l)
	require.Equal(t, start, m2.Replay)
	require.NoError(t, h.run(l, job{id: 5, parts: 1}, 0, true))
	three, c := putPart(t, l, group, 2, one.CTS)
	h.note(three.CTS, group, append(append(a, b...), c...))
	m3 := mustMark(t, l)
	if m3.Round < three.Round {
		require.Equal(t, start, m3.Replay, "the last part is reserved, not durable")
	}
	require.NoError(t, l.Flush(ctx))
	m4 := mustMark(t, l)
	require.Equal(t, m4.Ends, m4.Replay, "the group is durable")
	require.Less(t, two.Round, m4.Round)
	require.NoError(t, h.run(l, job{id: 4, parts: 1}, 0, true))
	closeLog(t, l)
	for _, m := range []Mark{m, m2, m3, m4} {
		_, err := h.scan(t, after(o, m))
		require.NoError(t, err)
	}
}

func TestAbandonedGroupsHoldNothingBack(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	require.NoError(t, h.abandon(l, job{id: 1, parts: 2, size: 50}, 0))
	require.NoError(t, h.run(l, job{id: 2, parts: 1}, 0, true))
	m := mustMark(t, l)
	require.Equal(t, m.Ends, m.Replay)
	require.Empty(t, l.groups)

	// Its second part lies behind a mark, its first one before.
	group := job{id: 3, parts: 3, size: 50}
	one, _ := putPart(t, l, group, 0, 0)
	require.NoError(t, l.Flush(context.Background()))
	putPart(t, l, group, 1, one.CTS)
	l.AbandonGroup(one.CTS)
	m = mustMark(t, l)
	require.NoError(t, h.run(l, job{id: 4, parts: 1}, 0, true))
	closeLog(t, l)
	_, err := h.scan(t, after(o, m))
	require.NoError(t, err)
	h.check(t, o)
}

func TestCrashedGroupsAreDropped(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	group := job{id: 1, parts: 3, size: 50}
	one, _ := putPart(t, l, group, 0, 0)
	putPart(t, l, group, 1, one.CTS)
	require.NoError(t, h.run(l, job{id: 2, parts: 1}, 0, true))
	crashed := mem.CrashClone(nil, vfs.Strict)
	closeLog(t, l)
	o.FS = crashed
	l = h.recover(t, o)
	require.NoError(t, h.run(l, job{id: 3, parts: 2}, 0, true))
	closeLog(t, l)
	h.check(t, o)
}

// TestLastPartWithoutTheFirst is damage, unless the checkpoint has the group.
func TestLastPartWithoutTheFirst(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	group := job{id: 1, parts: 2, size: 50}
	one, a := putPart(t, l, group, 0, 0)
	require.NoError(t, l.Flush(context.Background()))
	m := mustMark(t, l)
	two, b := putPart(t, l, group, 1, one.CTS)
	h.note(two.CTS, group, append(a, b...))
	require.NoError(t, l.Flush(context.Background()))
	closeLog(t, l)
	so := after(o, m)
	_, err := h.scan(t, so)
	require.NoError(t, err)
	so.From = m.Ends
	_, err = h.scan(t, so)
	require.ErrorIs(t, err, fault.ErrCorrupt)
}

// TestScansBesideALiveLog: each mark replaces the one before by a scan between
// them, as a checkpoint does, and the whole is the history.
func TestScansBesideALiveLog(t *testing.T) {
	for _, streams := range []int{1, 3} {
		seed := rand.Uint64()
		mem, h := newMem(t), newHistory()
		o := testOptions(mem, streams)
		last := Mark{Replay: make([]Position, streams), Ends: make([]Position, streams)}
		for restart := range 3 {
			so := after(o, last)
			tail, err := h.scan(t, so)
			require.NoError(t, err)
			require.NoError(t, Secure(o, tail))
			l := openLog(t, o, tail.Start)
			done := make(chan struct{})
			go func() {
				defer close(done)
				workload(t, l, h, seed+uint64(restart), 3, 40)
			}()
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				last = foldOnce(t, l, o, h, last)
			}
			closeLog(t, l)
		}
		h.check(t, o)
	}
}

// foldOnce scans from one mark to the next.
func foldOnce(t *testing.T, l *Log, o Options, h *history, last Mark) Mark {
	m := mustMark(t, l)
	if m.Round == last.Round {
		return last
	}
	so := after(o, last)
	so.UntilRound = m.Round
	seen := h.copy()
	tail, err := seen.scan(t, so)
	require.NoError(t, err)
	require.Equal(t, m.CTS+1, tail.NextCTS)
	require.Equal(t, m.Round+1, tail.NextRound)
	require.Equal(t, m.Ends, tail.Ends)
	for _, s := range l.Segments() {
		if s.End <= last.Replay[s.Stream] && s.End <= m.Replay[s.Stream] {
			for cts, list := range h.copy().addresses {
				if list[0].Stream() == s.Stream && list[0].Position() < s.End {
					require.LessOrEqual(t, cts, m.CTS)
				}
			}
		}
	}
	return m
}

// TestLiveScanOfNothingNew: what is behind the mark is not delivered.
func TestLiveScanOfNothingNew(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, job{id: 1, parts: 1}, 0, true))
	m := mustMark(t, l)
	require.NoError(t, h.run(l, job{id: 2, parts: 1}, 0, true))
	so := after(o, m)
	so.UntilRound = m.Round
	tail, err := Scan(context.Background(), so, func(*Group) error { return errRefused })
	require.NoError(t, err)
	require.Equal(t, m.CTS+1, tail.NextCTS)
	require.Equal(t, m.Ends, tail.Ends)
	closeLog(t, l)
}

func TestLiveScanOfALostRound(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	require.NoError(t, h.run(l, job{id: 1, parts: 1}, 0, true))
	m := mustMark(t, l)
	overwrite(t, mem, segmentPath(o.Dir, 0, 0), int64(segmentHeaderBytes(1)), make([]byte, 100))
	so := scanOptions(o)
	so.UntilRound = m.Round
	_, err := h.scan(t, so)
	require.ErrorIs(t, err, fault.ErrCorrupt)
	closeLog(t, l)
}

// TestCheckpointAheadOfTheLog: the log of a backup does not go with a newer
// checkpoint.
func TestCheckpointAheadOfTheLog(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	l := openLog(t, o, Start{})
	var marks []Mark
	var copies []*vfs.Mem
	for i := range 6 {
		for range i + 1 {
			require.NoError(t, h.run(l, job{id: uint64(i), parts: 1, size: 9000}, 0, true))
		}
		marks = append(marks, mustMark(t, l))
		copies = append(copies, mem.CrashClone(nil, vfs.Strict))
	}
	closeLog(t, l)
	h.promised = 0
	for i, m := range marks {
		for k, c := range copies {
			oc := o
			oc.FS = c
			so := after(oc, m)
			_, err := h.scan(t, so)
			so.Proven = nil
			_, bare := h.scan(t, so)
			if i <= k {
				require.NoError(t, err)
				require.NoError(t, bare)
				continue
			}
			require.Error(t, err, "checkpoint %d, log %d", i, k)
			require.Error(t, bare, "checkpoint %d, log %d", i, k)
		}
	}
}

func TestProgressAndCancel(t *testing.T) {
	_, o, h := manySegments(t, 2)
	so := scanOptions(o)
	var last, total int64
	so.Progress = func(done, of int64) {
		require.GreaterOrEqual(t, done, last)
		require.LessOrEqual(t, done, of)
		last, total = done, of
	}
	_, err := h.scan(t, so)
	require.NoError(t, err)
	require.Positive(t, last)
	require.Greater(t, total, last/2)
	so.Progress = nil

	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	_, err = Scan(ctx, so, func(*Group) error {
		if n++; n == 2 {
			cancel()
			return ctx.Err()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = Scan(ctx, so, func(*Group) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	_, err = Scan(context.Background(), so, func(*Group) error { return errRefused })
	require.ErrorIs(t, err, errRefused)
}

// TestMarkBehindARoundOfAnyLength: the round that a checkpoint ends with is looked for
// backwards, in steps.
func TestMarkBehindARoundOfAnyLength(t *testing.T) {
	for payload := 1; payload < 400<<10; payload = payload*5/3 + 1 {
		mem := newMem(t)
		o := testOptions(mem, 1)
		o.SegmentBytes, o.MaxUnflushed = 1<<20, MaxRoundBytes
		l := openLog(t, o, Start{})
		for i := range 2 {
			tk, _, err := write(l, Request{Part: 1, Parts: 1}, []Record{{Kind: Insert, Row: rowid.Make(1, uint64(i+1)), Payload: make([]byte, payload)}})
			require.NoError(t, err)
			l.Publish(tk)
			require.NoError(t, l.Acknowledge(t.Context(), tk, true))
		}
		m := mustMark(t, l)
		closeLog(t, l)
		tail, err := newHistory().scan(t, after(o, m))
		require.NoError(t, err, "payload of %d bytes", payload)
		require.Equal(t, m.Ends, tail.Ends)

		span := int64(alignSector(roundHeaderBytes(1) + FrameBytes(RecordBytes(0, payload))))
		f, err := mem.Open(segmentPath(o.Dir, 0, 0))
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{0}, int64(m.Ends[0])-span)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = newHistory().scan(t, after(o, m))
		require.ErrorIs(t, err, fault.ErrCorrupt, "payload of %d bytes", payload)
	}
}
