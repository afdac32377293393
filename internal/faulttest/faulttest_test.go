package faulttest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/faulttest"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// matrixOf runs a procedure on a directory with one file.
func matrixOf(t *testing.T, try func(d *faulttest.Disk, w *faulttest.Witness) error) *faulttest.Matrix {
	mem := vfs.NewMem()
	require.NoError(t, vfs.MkdirDurable(mem, "/db"))
	require.NoError(t, vfs.WriteFileAtomic(mem, "/db/f", []byte("0123456789")))
	return &faulttest.Matrix{
		Base:  func() *vfs.Mem { return mem.CrashClone(nil, vfs.Kill) },
		First: 1, Stride: 1, Watchdog: 10 * time.Second,
		Try: func(_ context.Context, d *faulttest.Disk, w *faulttest.Witness) error {
			d.Arm()
			return try(d, w)
		},
	}
}

func kindNamed(t *testing.T, name string) faulttest.Kind {
	for _, k := range faulttest.Kinds() {
		if k.Name == name {
			return k
		}
	}
	require.Fail(t, "no such kind", name)
	return faulttest.Kind{}
}

// rewrite writes and syncs the file, and returns each error.
func rewrite(d *faulttest.Disk, report func(error)) {
	f, err := d.Open("/db/f")
	if report(err); err != nil {
		return
	}
	_, err = f.WriteAt([]byte("abcdefgh"), 0)
	report(err)
	report(f.Sync())
	report(f.Close())
}

// TestEveryOperation: a procedure that reports everything passes, and the counts
// are those of its operations.
func TestEveryOperation(t *testing.T) {
	m := matrixOf(t, func(d *faulttest.Disk, w *faulttest.Witness) error {
		rewrite(d, func(err error) { w.Note(err) })
		return nil
	})
	operations, err := m.Operations(t.Context())
	require.NoError(t, err)
	want := map[string]int{"before": 4, "late": 4, "short": 1, "full": 1, "full, short": 1, "fsync, data kept": 1, "fsync, data dropped": 1}
	require.Equal(t, want, operations)
	for _, kind := range faulttest.Kinds() {
		counts, err := m.Run(t.Context(), kind, false)
		require.NoError(t, err)
		n := want[kind.Name]
		require.Equal(t, faulttest.Counts{Tries: n + 1, Injected: n, Returned: n}, counts, kind.Name)
	}
	counts, err := m.Run(t.Context(), kindNamed(t, "before"), true)
	require.NoError(t, err)
	require.Equal(t, faulttest.Counts{Tries: 5, Injected: 1 + 3 + 2 + 1, Returned: 7}, counts)
}

// TestUnreported: whatever the procedure swallows is found, and a record of the
// logger is as good as an error.
func TestUnreported(t *testing.T) {
	_, err := matrixOf(t, func(d *faulttest.Disk, w *faulttest.Witness) error {
		rewrite(d, func(error) {})
		return nil
	}).Run(t.Context(), kindNamed(t, "before"), false)
	require.ErrorContains(t, err, "unreported")
	require.ErrorContains(t, err, "sync /db/f")

	counts, err := matrixOf(t, func(d *faulttest.Disk, w *faulttest.Witness) error {
		rewrite(d, func(err error) {
			if err != nil {
				w.Logger().Warn("failed", "error", err)
			}
		})
		return nil
	}).Run(t.Context(), kindNamed(t, "before"), false)
	require.NoError(t, err)
	require.Equal(t, faulttest.Counts{Tries: 5, Injected: 4, Logged: 4}, counts)
}

// TestSilence: what may fail in silence does, and what fails by itself does not
// count as injected.
func TestSilence(t *testing.T) {
	m := matrixOf(t, func(d *faulttest.Disk, w *faulttest.Witness) error {
		_, _ = d.Stat("/sys/memory")
		_ = d.Remove("/db/missing")
		f, err := d.OpenRead("/db/f")
		if w.Note(err) == nil {
			_ = f.DropCache()
			_ = f.Close()
		}
		return nil
	})
	counts, err := m.Run(t.Context(), kindNamed(t, "late"), false)
	require.NoError(t, err)
	require.Equal(t, 1, counts.Tries, "the removal fails by itself, and no try comes after one without a fault")
	_, err = m.Run(t.Context(), kindNamed(t, "before"), false)
	require.ErrorContains(t, err, "remove /db/missing")
	require.NotContains(t, err.Error(), "stat")
	require.NotContains(t, err.Error(), "close")
	require.NotContains(t, err.Error(), "drop-cache")
}

// TestPanicsAndHangs are failures of the try.
func TestPanicsAndHangs(t *testing.T) {
	m := matrixOf(t, func(*faulttest.Disk, *faulttest.Witness) error { panic("oh") })
	_, err := m.Run(t.Context(), kindNamed(t, "before"), false)
	require.ErrorContains(t, err, "panic: oh")

	end := make(chan struct{})
	m = matrixOf(t, func(*faulttest.Disk, *faulttest.Witness) error { <-end; return nil })
	m.Watchdog = time.Millisecond
	_, err = m.Run(t.Context(), kindNamed(t, "before"), false)
	require.ErrorContains(t, err, "hangs")
	close(end)
}

// TestEffects: the failed fsyncs do to the medium what their names say, and the
// power cut in the moment of the fault sees it.
func TestEffects(t *testing.T) {
	for name, want := range map[string]string{"before": "abcdefgh89", "fsync, data kept": "abcdefgh89", "fsync, data dropped": "0123456789"} {
		var cut *vfs.Mem
		again := errors.New("did not run")
		m := matrixOf(t, func(d *faulttest.Disk, w *faulttest.Witness) error {
			f, err := d.Mem.Open("/db/f")
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteAt([]byte("abcdefgh"), 0)
			require.NoError(t, err)
			g, err := d.FS.Open("/db/f")
			if w.Note(err) != nil {
				return nil
			}
			defer g.Close()
			d.OnFault(func() { cut = d.Cut(vfs.Strict) })
			if w.Note(g.Sync()) != nil {
				require.Equal(t, want, string(d.Mem.Dump()["db/f"]), name)
				again = g.Sync()
				d.Disarm()
				lost := string(d.Cut(vfs.Strict).Dump()["db/f"]) == "0123456789"
				require.Equal(t, name != "before", lost, "%s: the second sync is not to be believed", name)
			}
			return nil
		})
		m.First, m.Stride = 1, 100
		if name == "before" {
			m.First = 2
		}
		_, err := m.Run(t.Context(), kindNamed(t, name), false)
		require.NoError(t, err)
		require.NoError(t, again, name)
		require.Equal(t, "0123456789", string(cut.Dump()["db/f"]))
	}
}

// TestErrors: the injected errors tell what they are.
func TestErrors(t *testing.T) {
	d := faulttest.NewDisk(vfs.NewMem(), faulttest.Plan{Kind: kindNamed(t, "full"), N: 1})
	require.NoError(t, d.MkdirAll("/a"), "not armed")
	d.Arm()
	_, err := d.Create("/a/f")
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	require.ErrorContains(t, err, "/a/f")
	require.Len(t, d.Injected(), 1)
	require.NoError(t, d.MkdirAll("/b"), "once")
}
