package rekindle_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// newPopulation opens a database whose log is compacted eagerly, when asked.
func newPopulation(t *testing.T, fs vfs.FS, o rekindle.Options) *population {
	o.SegmentBytes, o.CheckpointBytes = smallSegment, -1
	db, items := openItems(t, fs, o.Eager())
	return &population{t: t, db: db, items: items, rng: rand.New(rand.NewPCG(1, 2)), rows: map[int64]item{}}
}

// mixed leaves several segments behind in which every row of some is live.
func (p *population) mixed(rows int64) {
	for id := range rows {
		p.put(id, 1000)
		p.put(-1, 1000)
	}
	for range 2 {
		p.put(-1, 1)
		require.NoError(p.t, p.db.Checkpoint(p.t.Context()))
	}
}

// reopen closes as far as that is possible and looks at what is on the disk.
func (p *population) reopen(fs *vfs.Mem) {
	p.t.Helper()
	cut := fs.CrashClone(nil, vfs.Kill)
	_ = p.db.Close(p.t.Context()) // the log may have failed
	p.db, p.items = openItems(p.t, cut, rekindle.Options{})
	p.check()
	require.NoError(p.t, p.db.Close(p.t.Context()))
}

// TestCompactionFaults fails every single file operation of a compaction and its
// checkpoint in turn. No row is lost, and unless the log failed the next compaction
// goes through. The error is reported, but for what is tried again by itself: to
// remove a file, to prepare space, to read the header of the newest segment.
func TestCompactionFaults(t *testing.T) {
	reads := errorfs.All(errorfs.Kind(vfs.OpReadAt, vfs.OpOpenRead, vfs.OpStat), errorfs.PathGlob("log/*.log"))
	for name, match := range map[string]errorfs.Match{"reads": reads, "changes": errorfs.Mutating} {
		t.Run(name, func(t *testing.T) {
			for n, failed := 1, true; failed; n += 1 + n/20 {
				failed = compactionFault(t, match, n)
			}
		})
	}
}

func compactionFault(t *testing.T, match errorfs.Match, n int) (failed bool) {
	var armed atomic.Bool
	var hit atomic.Pointer[vfs.Op]
	nth := errorfs.OnNth(n)
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem, errorfs.Func(func(op vfs.Op) error {
		if armed.Load() && match(op) && nth(op) {
			hit.Store(&op)
			return syscall.EIO
		}
		return nil
	}))
	p := newPopulation(t, fs, rekindle.Options{IndexStrategy: "rebuild"})
	p.mixed(70)
	names, err := mem.List("/db/log")
	require.NoError(t, err)
	newest := names[len(names)-1]
	armed.Store(true)
	err = p.db.Compact(t.Context())
	armed.Store(false)
	if op := hit.Load(); op != nil && err == nil && op.Kind != vfs.OpRemove {
		require.True(t, op.Path == "/db/log" || path.Dir(op.Path) == "/db/log" && path.Base(op.Path) >= newest, "%v went unnoticed", op)
	}
	if _, crossErr := p.db.CrossCheck(t.Context()); crossErr != nil {
		require.ErrorIs(t, crossErr, syscall.EIO)
	}
	if insertItem(t, p.db, p.items, 1000, "") == nil { // else the log has failed
		p.drop(1000)
		require.NoError(t, p.db.Compact(t.Context()))
		p.check()
	} else {
		require.ErrorIs(t, err, syscall.EIO)
	}
	p.reopen(mem)
	return hit.Load() != nil
}

// TestDamagedSegmentStays: what cannot be read of a segment is not moved, and not
// lost for salvage either; compaction says so and does without it.
func TestDamagedSegmentStays(t *testing.T) {
	var log bytes.Buffer
	fs := vfs.NewMem()
	p := newPopulation(t, fs, rekindle.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	p.mixed(300)
	const damaged = "/db/log/00-0000000000010000.log"
	f, err := fs.Open(damaged)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("damage"), smallSegment/2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for range 4 {
		p.put(-1, 1)
		require.NoError(t, p.db.Compact(t.Context()))
	}
	require.Equal(t, 1, strings.Count(log.String(), "level="), log.String())
	require.Contains(t, log.String(), "damaged")
	names, err := fs.List("/db/log")
	require.NoError(t, err)
	require.Contains(t, names, path.Base(damaged))
	require.NotContains(t, names, "00-0000000000000000.log")
	require.NotContains(t, names, "00-0000000000020000.log")
	p.check() // all rows are in memory
	require.NoError(t, p.db.Close(t.Context()))
}

// TestCompactionOnAFullDisk: when the log has no space left because every segment
// keeps a few rows, compaction makes room from what is kept back for it.
func TestCompactionOnAFullDisk(t *testing.T) {
	const segments = 14
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem, errorfs.Func(func(op vfs.Op) error {
		if op.Kind != vfs.OpCreate || path.Ext(op.Path) != ".log" {
			return nil
		}
		if names, err := mem.List(path.Dir(op.Path)); err != nil || len(names) >= segments {
			return syscall.ENOSPC
		}
		return nil
	}))
	o := rekindle.Options{SegmentBytes: smallSegment, CheckpointBytes: -1}
	db, items := openItems(t, fs, o)
	p := &population{t: t, db: db, items: items, rng: rand.New(rand.NewPCG(1, 2)), rows: map[int64]item{}}
	for range 3 {
		var err error
		for i := int64(0); err == nil; i++ {
			id := int64(-1)
			if i%8 == 0 {
				id = i / 8
			}
			err = p.tryPut(id, 2000)
		}
		require.ErrorIs(t, err, rekindle.ErrNoSpace)
		require.NoError(t, db.Checkpoint(t.Context()))
		require.NoError(t, db.Compact(t.Context()))
		p.check()
	}
	require.NoError(t, db.Close(t.Context()))
	p.db, p.items = openItems(t, mem, rekindle.Options{})
	p.check()
	require.NoError(t, p.db.Close(t.Context()))
}

func (p *population) tryPut(id int64, size int) error {
	note := strings.Repeat("x", size)
	row := item{ID: id, Name: fmt.Sprint(id), Note: &note}
	err := p.db.Update(p.t.Context(), func(tx *rekindle.Tx) error { return p.items.Upsert(tx, &row) })
	if err == nil {
		p.rows[id] = row
	}
	return err
}
