package rekindle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// openCounters opens a database of the counters workload in any directory.
func openCounters(t *testing.T, fs vfs.FS, dir string, o rekindle.Options) (*rekindle.DB, *counters.Workload) {
	t.Helper()
	db, err := rekindle.Open(t.Context(), dir, o.OnFS(fs))
	require.NoError(t, err)
	w, err := counters.Open(t.Context(), db)
	require.NoError(t, err)
	return db, w
}

// TestBackupUnderLoad: each backup that is taken while workers commit and the log
// is compacted in a tight loop holds what was committed before, in one consistent
// state, and goes on as a database of its own.
func TestBackupUnderLoad(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewMem()
			o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: 100 << 10, LogStreams: 2, IndexStrategy: strategy}
			db, w := openCounters(t, disk, "/db", o)
			running, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			defer func() { stop(); group.Wait() }()
			var mu sync.Mutex
			acked := map[int32]int64{}
			for worker := range int32(4) {
				group.Go(func() {
					for running.Err() == nil {
						seq, err := w.Step(t.Context(), worker)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						acked[worker] = seq
						mu.Unlock()
					}
				})
			}
			group.Go(func() {
				for running.Err() == nil {
					if err := db.Compact(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
			for i := range 4 {
				mu.Lock()
				before := maps.Clone(acked)
				mu.Unlock()
				dir := fmt.Sprint("/backups/", i)
				r, err := db.Backup(t.Context(), dir)
				require.NoError(t, err)
				require.NotZero(t, r.CTS)
				useBackup(t, disk, dir, o, before)
			}
			stop()
			group.Wait()
			require.NoError(t, db.Close(t.Context()))
			db, w = openCounters(t, disk, "/db", o)
			require.NoError(t, w.Check(t.Context(), acked))
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

func openItemsAt(t *testing.T, fs vfs.FS, dir string) (*rekindle.DB, *rekindle.Table[item]) {
	t.Helper()
	db, err := rekindle.Open(t.Context(), dir, rekindle.Options{}.OnFS(fs))
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	return db, items
}

// useBackup lives in a backup for a while.
func useBackup(t *testing.T, fs vfs.FS, dir string, o rekindle.Options, acked map[int32]int64) {
	t.Helper()
	for range 3 {
		report, err := rekindle.Verify(t.Context(), dir, o.OnFS(fs))
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		db, w := openCounters(t, fs, dir, o)
		require.NoError(t, w.Check(t.Context(), acked))
		for i := range int32(30) {
			seq, err := w.Step(t.Context(), i%3)
			require.NoError(t, err)
			acked[i%3] = seq
		}
		require.NoError(t, db.Compact(t.Context()))
		require.NoError(t, db.Close(t.Context()))
	}
}

// TestBackupLetsGo: what a backup pins goes when it is done.
func TestBackupLetsGo(t *testing.T) {
	disk := vfs.NewMem()
	db, items := openItems(t, disk, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1})
	fill := func() {
		for range 20 {
			update(t, db, func(tx *rekindle.Tx) {
				require.NoError(t, items.Upsert(tx, &item{ID: 1, Name: strings.Repeat("x", 4000)}))
			})
		}
		require.NoError(t, db.Checkpoint(t.Context()))
	}
	fill()
	fill()
	fill()
	usual := db.Stats().LogBytes
	backups := 0
	err := db.BackupOn(t.Context(), errorfs.Wrap(disk, errorfs.Func(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.Contains(op.Path, "/backup/log/") && backups == 0 {
			backups++
			for range 10 {
				fill()
			}
		}
		return nil
	})), "/backup")
	require.NoError(t, err)
	require.Equal(t, 1, backups)
	for range 2 {
		fill()
	}
	require.LessOrEqual(t, db.Stats().LogBytes, usual+128<<10)
	require.NoError(t, db.Close(t.Context()))
	db, items = openItemsAt(t, disk, "/backup")
	require.Len(t, allItems(t, db, items), 1)
	require.NoError(t, db.Close(t.Context()))
}

// TestBackupFails: whichever operation on the new directory fails, the error is
// reported, the directory holds no database but if only its lock was not let go
// of, the next backup into it works, and the database is as it was.
func TestBackupFails(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		db, items := openItems(t, disk, rekindle.Options{})
		for nth := 1; ; nth++ {
			var op vfs.Op // that fails
			fs := errorfs.Wrap(disk, errorfs.Then(errorfs.If(errorfs.OnNth(nth), errors.New("broken")), func(o vfs.Op) error { op = o; return nil }))
			require.ErrorIs(t, db.BackupOn(t.Context(), fs, "/backup"), errorfs.ErrInjected, "operation %d", nth)
			if op.Kind == vfs.OpClose && path.Base(op.Path) == "LOCK" {
				break // the last one
			}
			_, err := rekindle.Open(t.Context(), "/backup", rekindle.Options{ReadOnly: true}.OnFS(disk))
			require.ErrorIs(t, err, rekindle.ErrMissingFile, "operation %d: %v", nth, op)
			require.Equal(t, want, allItems(t, db, items))
		}
		require.NoError(t, db.Close(t.Context()))
		db, items = openItemsAt(t, disk, "/backup")
		require.Equal(t, want, allItems(t, db, items))
		require.NoError(t, db.Close(t.Context()))
	}
}

// TestPowerCutWhileBackingUp: what a power cut leaves of a backup is refused, or is
// all of it; only before there is anything in it a database is made there.
func TestPowerCutWhileBackingUp(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		db, _ := openItems(t, disk, rekindle.Options{})
		var cuts []*vfs.Mem
		disk.OnOp(func(int, vfs.Op) error {
			for _, mode := range []vfs.CrashMode{vfs.Strict, vfs.Keep} {
				cuts = append(cuts, disk.CrashClone(nil, mode))
			}
			return nil
		})
		_, err := db.Backup(t.Context(), "/backup")
		require.NoError(t, err)
		disk.OnOp(nil)
		require.NoError(t, db.Close(t.Context()))
		complete := 0
		for i, cut := range append(cuts, disk.CrashClone(nil, vfs.Strict)) {
			begun := slices.ContainsFunc(slices.Collect(maps.Keys(cut.Dump())), func(name string) bool {
				dir, file := path.Split(name)
				return file != "" && strings.HasPrefix(dir, "backup/") && dir != "backup/"
			})
			db, err := rekindle.Open(t.Context(), "/backup", rekindle.Options{}.OnFS(cut))
			if err != nil {
				require.ErrorIs(t, err, rekindle.ErrMissingFile, i)
				continue
			}
			if begun {
				items, err := rekindle.OpenTable[item](t.Context(), db, "items")
				require.NoError(t, err)
				require.Equal(t, want, allItems(t, db, items))
				complete++
			}
			require.NoError(t, db.Close(t.Context()))
		}
		require.NotZero(t, complete)
	}
}

// TestBackupOfDamage: what is damaged in the database, in memory or not, does not go
// into a backup that nobody doubts.
func TestBackupOfDamage(t *testing.T) {
	for name, harm := range map[string]struct {
		do   func(t *testing.T, fs *vfs.Mem, segment string)
		want error
	}{
		"changed": {func(t *testing.T, fs *vfs.Mem, segment string) {
			alter(t, fs, segment, func(b []byte) []byte { b[smallSegment/2]++; return b })
		}, rekindle.ErrCorrupt},
		"cut": {func(t *testing.T, fs *vfs.Mem, segment string) {
			alter(t, fs, segment, func(b []byte) []byte { return b[:smallSegment/2] })
		}, rekindle.ErrCorrupt},
		"gone": {func(t *testing.T, fs *vfs.Mem, segment string) { require.NoError(t, fs.Remove(segment)) }, rekindle.ErrMissingFile},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			p := newPopulation(t, fs, rekindle.Options{})
			p.mixed(300)
			const segment = "/db/log/00-0000000000010000.log"
			harm.do(t, fs, segment)
			_, err := p.db.Backup(t.Context(), "/backup")
			require.ErrorIs(t, err, harm.want)
			require.ErrorContains(t, err, segment)
			names, err := fs.List("/backup")
			require.NoError(t, err)
			require.Equal(t, []string{"LOCK"}, names)
			p.check() // all rows are in memory
			require.NoError(t, p.db.Close(t.Context()))
		})
	}
}
