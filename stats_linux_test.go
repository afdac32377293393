//go:build !race

package rekindle_test

import (
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var statsMegabytes = flag.Int("stats.megabytes", 100, "size of the database of TestStatsAddUp")

// TestStatsAddUp: the figures of a database are those of the process and of the
// file system.
func TestStatsAddUp(t *testing.T) {
	if !vfs.MapsFiles {
		t.Skip("files are read, not mapped, and then part of the Go heap")
	}
	dir := t.TempDir()
	o := rekindle.Options{CheckpointBytes: -1, Durability: rekindle.None}
	open := func() (*rekindle.DB, *rekindle.Table[item]) {
		db, err := rekindle.Open(t.Context(), dir, &o)
		require.NoError(t, err)
		items, err := rekindle.OpenTable[item](t.Context(), db, "items")
		require.NoError(t, err)
		return db, items
	}
	db, items := open()
	rows := int64(*statsMegabytes) << 10
	note := strings.Repeat("x", 900)
	for id := int64(0); id < rows; {
		update(t, db, func(tx *rekindle.Tx) {
			for end := min(id+1000, rows); id < end; id++ {
				require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id), Note: &note}))
			}
		})
	}
	requireHonest(t, db, dir, "loaded")
	require.NoError(t, db.Checkpoint(t.Context()))
	update(t, db, func(tx *rekindle.Tx) {
		for id := range rows / 100 {
			require.NoError(t, items.Delete(tx, &item{ID: id}))
		}
	})
	require.NoError(t, db.Checkpoint(t.Context()))
	s := settle(t, db)
	requireHonest(t, db, dir, "checkpointed")
	require.InEpsilon(t, rows*990, s.LogLiveBytes, 0.15, "live rows, rounded up")
	require.EqualValues(t, rows*99/100+1, s.RowIDs, "with the row of the catalogue")
	require.NoError(t, db.Close(t.Context()))

	db, _ = open()
	requireHonest(t, db, dir, "opened again")
	require.NotZero(t, db.Stats().MappedBytes)
	require.NoError(t, db.Close(t.Context()))
	require.Zero(t, mappedBelow(t, dir))
}

func TestStatsIsCheap(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		db, _ := openItems(t, vfs.NewMem(), rekindle.Options{IndexStrategy: strategy})
		require.LessOrEqual(t, testing.AllocsPerRun(10, func() { db.Stats() }), 2.0, "%s: the lists of segments", strategy)
		require.NoError(t, db.Close(t.Context()))
	}
}

// requireHonest compares what Stats says with what the system says.
func requireHonest(t *testing.T, db *rekindle.DB, dir, when string) {
	t.Helper()
	require.Eventually(t, func() bool { // not while space is being prepared
		s := db.Stats()
		return diskUsage(t, dir) == s.LogBytes+s.CheckpointBytes
	}, 10*time.Second, time.Millisecond, "%s: disk", when)
	runtime.GC()
	s := db.Stats()
	t.Logf("%s: %+v", when, s)
	require.Equal(t, s.LogBytes, s.LogLiveBytes+s.LogDeadBytes)
	mapped := float64(mappedBelow(t, dir))
	require.InDelta(t, mapped, s.MappedBytes, mapped/20, "%s: mapped files, in whole pages", when)
	const program = 8 << 20 // data of the program itself, stacks of threads
	said, real := s.GoReserved+s.ArenaReserved, anonymousMemory(t)
	untouched := s.ArenaReserved - s.ArenaInUse // at most
	require.LessOrEqual(t, real, said*21/20+program, "%s: memory", when)
	require.LessOrEqual(t, said, (real+untouched)*21/20+program, "%s: memory", when)
}

func diskUsage(t *testing.T, dir string) (sum int64) {
	require.NoError(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		sum += info.Size()
		return err
	}))
	return sum
}

// anonymousMemory is the resident memory of the process that no file backs.
func anonymousMemory(t *testing.T) (bytes int64) {
	eachLine(t, "/proc/self/smaps_rollup", func(line string) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &kilobytes); n == 1 {
			bytes = kilobytes << 10
		}
	})
	return bytes
}

// mappedBelow is the size of the mappings of files in a directory.
func mappedBelow(t *testing.T, dir string) (sum int64) {
	eachLine(t, "/proc/self/maps", func(line string) {
		var from, to int64
		if strings.Contains(line, dir) {
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			require.NoError(t, err)
			sum += to - from
		}
	})
	return sum
}

func eachLine(t *testing.T, path string, f func(line string)) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f(lines.Text())
	}
	require.NoError(t, lines.Err())
}
