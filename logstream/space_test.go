package logstream

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// fullDisk fails what takes new space, as long as it is on.
func fullDisk(mem *vfs.Mem, kinds ...vfs.Kind) (vfs.FS, *errorfs.Switch, *errorfs.Counter) {
	sw := errorfs.Toggle(errorfs.Func(func(op vfs.Op) error {
		for _, k := range kinds {
			if op.Kind != k {
				continue
			}
			if k != vfs.OpWriteAt || op.Size > 1<<15 { // preparing writes more at once than these tests commit
				return syscall.ENOSPC
			}
		}
		return nil
	}))
	count := errorfs.Count(sw)
	return errorfs.Wrap(mem, count), sw, count
}

// TestNoSpace: with a full disk commits go on until the prepared space is used
// up, then fail with nothing taken; urgent ones get the reserve; with space
// again everything goes on.
func TestNoSpace(t *testing.T) {
	for name, kinds := range map[string][]vfs.Kind{"create": {vfs.OpCreate}, "write": {vfs.OpWriteAt}, "folder": {vfs.OpSyncDir}} {
		t.Run(name, func(t *testing.T) {
			mem, h := newMem(t), newHistory()
			fsys, full, tries := fullDisk(mem, kinds...)
			o := testOptions(fsys, 1)
			l := openLog(t, o, Start{})
			j := job{id: 5, parts: 1, size: 300}
			commit := func(urgent bool) error {
				tk, a, err := write(l, Request{Urgent: urgent}, j.records(0))
				if err != nil {
					return err
				}
				h.note(tk.CTS, j, a)
				l.Publish(tk)
				err = l.Acknowledge(context.Background(), tk, true)
				h.promise(tk.CTS)
				return err
			}
			require.NoError(t, commit(false))
			settleSpace(t, l)
			full.On()
			var err error
			for err == nil {
				err = commit(false)
				time.Sleep(100 * time.Microsecond) // a chance for the preparer
			}
			require.ErrorIs(t, err, fault.ErrNoSpace)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.NoError(t, l.Failed())
			require.LessOrEqual(t, tries.Injected(), 8, "it is tried ahead, and again when asked, not with every one of a hundred commits")
			before, urgent := l.Visible(), 0
			require.ErrorIs(t, commit(false), fault.ErrNoSpace)
			require.Equal(t, before, l.Visible())
			for ; commit(true) == nil; urgent++ {
			}
			require.Greater(t, urgent, 3)
			require.ErrorIs(t, commit(true), fault.ErrNoSpace)

			full.Off()
			for range 100 {
				require.NoError(t, commit(false))
			}
			closeLog(t, l)
			o.FS = mem
			h.check(t, o)
			require.Zero(t, mem.Handles())
		})
	}
}

func TestNoSpaceForTheFirstCommit(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.OpMkdirAll, vfs.OpSyncDir, vfs.OpCreate, vfs.OpWriteAt} {
		mem, h := newMem(t), newHistory()
		fsys, full, _ := fullDisk(mem, kind)
		full.On()
		l := openLog(t, testOptions(fsys, 2), Start{})
		for range 3 {
			require.ErrorIs(t, h.run(l, makeJob(1), 0, true), fault.ErrNoSpace, kind)
		}
		require.Zero(t, l.Visible())
		full.Off()
		require.NoError(t, h.run(l, makeJob(1), 0, true))
		closeLog(t, l)
		h.check(t, testOptions(mem.CrashClone(nil, vfs.Strict), 2))
	}
}

// TestNoSpaceAtSync: a file system that finds out at the sync. Prepared space
// that nobody owns is made anew; on a file with data the error is final.
func TestNoSpaceAtSync(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(nil, 1)
	once := errorfs.All(errorfs.Kind(vfs.OpDatasync), errorfs.PathGlob(segmentPath(o.Dir, 0, MinSegmentBytes)), errorfs.OnNth(1))
	full := errorfs.Count(errorfs.If(once, syscall.ENOSPC))
	o.FS = errorfs.Wrap(mem, full)
	l := openLog(t, o, Start{})
	for i := range 100 {
		err := h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true)
		if err != nil && full.Injected() == 1 { // it waited for this very space
			require.ErrorIs(t, err, fault.ErrNoSpace)
			err = h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true)
		}
		require.NoError(t, err)
	}
	require.Equal(t, 1, full.Injected())
	closeLog(t, l)
	o.FS = mem
	h.check(t, o)
}

// TestFileOfAFailedCreate: an error of Create does not mean that there is no file.
// The next try is not stopped by it.
func TestFileOfAFailedCreate(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(nil, 1)
	once := errorfs.All(errorfs.Kind(vfs.OpCreate), errorfs.PathGlob(segmentPath(o.Dir, 0, MinSegmentBytes)), errorfs.OnNth(1))
	failing := errorfs.Count(errorfs.If(once, errorfs.Late(syscall.EIO)))
	o.FS = errorfs.Wrap(mem, failing)
	l := openLog(t, o, Start{})
	for i := range 100 {
		err := h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true)
		if err != nil {
			require.ErrorIs(t, err, fault.ErrNoSpace)
			require.ErrorIs(t, err, syscall.EIO)
			err = h.run(l, job{id: uint64(i), parts: 1, size: 4000}, 0, true)
		}
		require.NoError(t, err)
	}
	require.Equal(t, 1, failing.Injected())
	closeLog(t, l)
	o.FS = mem
	h.check(t, o)
}

// TestSpaceGrowsWithUse: a small log takes little space.
func TestSpaceGrowsWithUse(t *testing.T) {
	mem := newMem(t)
	o := testOptions(mem, 1)
	o.SegmentBytes, o.MaxUnflushed = DefaultSegmentBytes, 0
	l := openLog(t, o, Start{})
	payload := make([]byte, 100_000)
	used := func() (total int64) {
		names, err := mem.List(o.Dir)
		require.NoError(t, err)
		for _, name := range names {
			info, err := mem.Stat(joinPath(o.Dir, name))
			require.NoError(t, err)
			total += info.Size
		}
		return total
	}
	written := int64(0)
	for written < 40<<20 {
		tk, _, err := write(l, Request{}, []Record{{Kind: Insert, Payload: payload}})
		require.NoError(t, err)
		l.Publish(tk)
		require.NoError(t, l.Acknowledge(context.Background(), tk, true))
		settleSpace(t, l)
		written += int64(len(payload))
		bound := 3*written + 2<<20
		if written > DefaultSegmentBytes/3 {
			bound = written + 4*DefaultSegmentBytes // whole segments
		}
		require.Less(t, used(), bound, "after %d bytes", written)
	}
	require.Positive(t, l.Stats().Prepared)
	closeLog(t, l)
}

// TestForeignFilesInTheWay: a segment that Start does not know is not touched.
func TestForeignFilesInTheWay(t *testing.T) {
	mem := newMem(t)
	o := testOptions(mem, 1)
	require.NoError(t, mem.MkdirAll(o.Dir))
	f, err := mem.Create(segmentPath(o.Dir, 0, 0))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("precious"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	l := openLog(t, o, Start{})
	_, _, err = write(l, Request{}, nil)
	require.ErrorIs(t, err, fault.ErrReadOnly)
	closeLog(t, l)
	require.Equal(t, "precious", string(readFile(t, mem, segmentPath(o.Dir, 0, 0))))
}

// TestOversizedFrames: a frame up to MaxFrame has a round of its own.
func TestOversizedFrames(t *testing.T) {
	mem, h := newMem(t), newHistory()
	o := testOptions(mem, 1)
	o.SegmentBytes, o.MaxUnflushed = 8<<20, 0
	l := openLog(t, o, Start{})
	for _, size := range []int{100, l.MaxFrame(), 100, 3 << 19, 100, l.MaxFrame()} {
		records := []Record{{Kind: Insert, Payload: make([]byte, size-frmHeader-recHeader)}}
		if size > 1000 {
			records[0].Payload[size/2] = 1
		}
		tk, list, err := write(l, Request{}, records)
		require.NoError(t, err)
		l.Publish(tk)
		require.NoError(t, l.Acknowledge(context.Background(), tk, true))
		got, _, err := l.ReadAt(list[0], nil)
		require.NoError(t, err)
		requireRecord(t, records[0], got)
		h.promise(tk.CTS)
	}
	_, err := l.Reserve(context.Background(), Request{Bytes: l.MaxFrame() + 8})
	require.ErrorIs(t, err, fault.ErrRowTooLarge)
	var large *fault.TooLarge
	require.True(t, errors.As(err, &large))
	require.Equal(t, l.MaxFrame(), large.Limit)
	closeLog(t, l)
	_, n := plainScan(t, o)
	require.Equal(t, 6, n)
}
