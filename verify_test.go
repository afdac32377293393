package rekindle_test

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// TestVerifyOnline verifies beside commits, checkpoints and compactions, which
// remove the files that are being read.
func TestVerifyOnline(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			a := age(t, 3)
			a.open(vfs.NewMem(), rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: strategy, LogStreams: 2}.Eager())
			var work sync.WaitGroup
			work.Go(func() {
				for range 4 {
					a.commits(60)
					require.NoError(t, a.db.Checkpoint(context.Background()))
					require.NoError(t, a.db.Compact(context.Background()))
				}
			})
			done := make(chan struct{})
			go func() { work.Wait(); close(done) }()
			for n, more := 0, true; more; n++ {
				select {
				case <-done:
					more = n == 0
				default:
				}
				report, err := a.db.Verify(t.Context())
				require.NoError(t, err)
				require.Empty(t, report.Findings)
				require.NotZero(t, report.Files)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := a.db.Verify(ended)
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, a.db.Close(t.Context()))
			_, err = a.db.Verify(t.Context())
			require.ErrorIs(t, err, rekindle.ErrClosed)
		})
	}
}

// TestVerifyOnlineFindsUnreadable: a file of the running database that cannot be read
// is a finding with the name of that file, wherever in the file that is.
func TestVerifyOnlineFindsUnreadable(t *testing.T) {
	disk, _ := livedWith(t, rekindle.IndexStrategies()[0])
	for n := 1; n < 5; n++ {
		match := errorfs.All(errorfs.Kind(vfs.OpReadAt), errorfs.PathGlob("*.ria"), errorfs.OnNth(n))
		broken := errorfs.Toggle(errorfs.If(match, syscall.EIO))
		db, _ := openItems(t, errorfs.Wrap(disk.CrashClone(nil, vfs.Kill), broken), rekindle.Options{CheckpointBytes: -1})
		broken.On()
		report, err := db.Verify(t.Context())
		broken.Off()
		require.NoError(t, err)
		require.Len(t, report.Findings, 1)
		require.Equal(t, ".ria", path.Ext(report.Findings[0].Path))
		require.Contains(t, report.Findings[0].Reason, syscall.EIO.Error())
		require.True(t, report.Damage())
		require.NoError(t, db.Close(t.Context()))
	}
}

// TestVerifyOnlineFindsUnreadableFolder: nor does it matter which look at the folder of
// the log fails.
func TestVerifyOnlineFindsUnreadableFolder(t *testing.T) {
	disk, _ := livedWith(t, rekindle.IndexStrategies()[0])
	for n := 1; ; n++ {
		match := errorfs.All(errorfs.Kind(vfs.OpList), errorfs.PathGlob("db/log"), errorfs.OnNth(n))
		failing := errorfs.Count(errorfs.If(match, syscall.EIO))
		broken := errorfs.Toggle(failing)
		db, _ := openItems(t, errorfs.Wrap(disk.CrashClone(nil, vfs.Kill), broken), rekindle.Options{CheckpointBytes: -1})
		broken.On()
		report, err := db.Verify(t.Context())
		broken.Off()
		require.NoError(t, db.Close(t.Context()))
		if failing.Injected() == 0 {
			require.Greater(t, n, 2, "looks seen")
			return
		}
		require.True(t, err != nil || report.Damage(), "look %d", n)
	}
}

// TestVerifyOnlineFindsDamage harms a running database file by file.
func TestVerifyOnlineFindsDamage(t *testing.T) {
	disk, want := livedWith(t, rekindle.IndexStrategies()[0])
	for name, content := range disk.Dump() {
		if strings.Trim(string(content), "\x00") == "" { // a folder, LOCK, prepared space
			continue
		}
		for _, readOnly := range []bool{false, true} {
			harmed := disk.CrashClone(nil, vfs.Keep)
			db, items := openItems(t, harmed, rekindle.Options{ReadOnly: readOnly, CheckpointBytes: -1})
			report, err := db.Verify(t.Context())
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			alter(t, harmed, "/"+name, func(b []byte) []byte { b[7] ^= 1; return b })
			report, err = db.Verify(t.Context())
			require.NoError(t, err)
			require.True(t, report.Damage(), name)
			require.Equal(t, "/"+name, report.Findings[0].Path)
			require.Equal(t, want, allItems(t, db, items))
			_ = db.Close(t.Context()) // a checkpoint may meet what was harmed
		}
	}
	empty := vfs.NewMem()
	_, err := rekindle.Verify(t.Context(), "/nothing", rekindle.Options{}.OnFS(empty))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, empty.MkdirAll("/nothing"))
	report, err := rekindle.Verify(t.Context(), "/nothing", rekindle.Options{}.OnFS(empty))
	require.NoError(t, err)
	require.True(t, report.Damage())
}

// TestVerifyLocked: an open database is not verified from outside.
func TestVerifyLocked(t *testing.T) {
	disk, _ := lived(t)
	db, _ := openItems(t, disk, rekindle.Options{})
	_, err := rekindle.Verify(t.Context(), "/db", rekindle.Options{}.OnFS(disk))
	require.ErrorIs(t, err, rekindle.ErrLocked)
	require.NoError(t, db.Close(t.Context()))
}
