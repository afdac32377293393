package vfs_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestTranscript is the order in which the helpers work, and the form of
// every kind of operation.
func TestTranscript(t *testing.T) {
	var log vfs.Transcript
	fsys := vfs.WithLog(vfs.NewMem(), log.Add)
	log.Note("WriteFileAtomic, new")
	require.NoError(t, fsys.MkdirAll("db"))
	require.NoError(t, vfs.WriteFileAtomic(fsys, "db/CURRENT", []byte("MANIFEST-1")))
	log.Note("WriteFileAtomic, replacing, with a temporary file left by a crash")
	put(t, fsys, "db/CURRENT.tmp", "half of MANIF")
	require.NoError(t, vfs.WriteFileAtomic(fsys, "db/CURRENT", []byte("MANIFEST-2")))
	log.Note("PacedWriter")
	f, err := fsys.Create("db/array")
	require.NoError(t, err)
	w := vfs.NewPacedWriter(f, 4096)
	for range 9 {
		_, err := w.Write(make([]byte, 1000))
		require.NoError(t, err)
	}
	require.NoError(t, w.Finish())
	require.NoError(t, f.DropCache())
	require.NoError(t, f.Truncate(100))
	require.NoError(t, f.Close())
	log.Note("others")
	_, err = vfs.ReadFile(fsys, "db/CURRENT", 100)
	require.NoError(t, err)
	lock, err := fsys.Lock("db/LOCK")
	require.NoError(t, err)
	_, err = fsys.Lock("db/LOCK")
	require.Error(t, err)
	require.NoError(t, lock.Close())
	m, err := fsys.Map("db/array", 100)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = fsys.List("db")
	require.NoError(t, err)
	_, err = fsys.Stat("db/missing")
	require.Error(t, err)
	require.Error(t, fsys.Rename("db/missing", "db/x"))
	f, err = fsys.Open("db/CURRENT")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, fsys.Remove("db/CURRENT"))
	golden(t, "transcript.txt", log.String())
}

// TestWriteFileAtomicCrash cuts the power at each operation, and then opens as
// a database would: by writing the file again.
func TestWriteFileAtomicCrash(t *testing.T) {
	for _, existing := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 0))
		mem := vfs.NewMem()
		allowed := []string{"missing", "new"}
		if existing {
			script{t, mem}.durable("f", "old")
			allowed = []string{"old", "new"}
		}
		mem.OnOp(func(int, vfs.Op) error {
			for range 100 {
				crashed := mem.CrashClone(rng, vfs.Random)
				require.Contains(t, allowed, contentOrMissing(crashed, "f"))
				require.NoError(t, vfs.WriteFileAtomic(crashed, "f", []byte("newer")))
				require.Equal(t, "newer", contentOrMissing(crashed.CrashClone(nil, vfs.Strict), "f"))
			}
			return nil
		})
		require.NoError(t, vfs.WriteFileAtomic(mem, "f", []byte("new")))
		mem.OnOp(nil)
		require.Equal(t, map[string][]byte{"f": []byte("new")}, mem.CrashClone(nil, vfs.Strict).Dump())
	}
}

func contentOrMissing(mem *vfs.Mem, name string) string {
	content, ok := mem.Dump()[name]
	if !ok {
		return "missing"
	}
	return string(content)
}

// TestWriteFileAtomicErrors fails each operation in turn until none is left.
func TestWriteFileAtomicErrors(t *testing.T) {
	for n := 1; ; n++ {
		mem := vfs.NewMem()
		script{t, mem}.durable("f", "old")
		errs := errorfs.Count(errorfs.If(errorfs.OnNth(n), syscall.EIO))
		err := vfs.WriteFileAtomic(errorfs.Wrap(mem, errs), "f", []byte("new"))
		require.Zero(t, mem.Handles())
		if errs.Injected() == 0 {
			require.NoError(t, err)
			require.Greater(t, n, 7, "operations seen")
			return
		}
		require.ErrorIs(t, err, errorfs.ErrInjected, "operation %d", n)
		require.Contains(t, []string{"old", "new"}, contentOrMissing(mem, "f"))
		require.NotContains(t, mem.Dump(), "f.tmp", "operation %d", n)
	}
}

// TestMkdirDurable cuts the power as soon as the directory is there.
func TestMkdirDurable(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("a"))
	require.NoError(t, mem.SyncDir("."))
	ops := mem.Ops()
	require.NoError(t, vfs.MkdirDurable(mem, "a/b/c/d"))
	info, err := mem.CrashClone(nil, vfs.Strict).Stat("a/b/c/d")
	require.NoError(t, err)
	require.True(t, info.Dir)
	require.Equal(t, ops+7, mem.Ops())
	require.NoError(t, vfs.MkdirDurable(mem, "a/b/c"))
	require.Equal(t, ops+7, mem.Ops(), "what exists is left alone")

	failing := errorfs.Wrap(vfs.NewMem(), errorfs.If(errorfs.Kind(vfs.OpSyncDir), syscall.EIO))
	require.ErrorIs(t, vfs.MkdirDurable(failing, "a/b"), syscall.EIO)
	require.NoError(t, vfs.MkdirDurable(vfs.OS(), filepath.Join(t.TempDir(), "x", "y")))
}

// TestMkdirDurableAgain cuts the power after a call that failed, wherever, and one
// that did not. A parent that is not ours need not let itself be synced.
func TestMkdirDurableAgain(t *testing.T) {
	for n := 1; ; n++ {
		mem := vfs.NewMem()
		errs := errorfs.Count(errorfs.If(errorfs.OnNth(n), syscall.EIO))
		first := vfs.MkdirDurable(errorfs.Wrap(mem, errs), "a/b/c")
		require.NoError(t, vfs.MkdirDurable(mem, "a/b/c"))
		if errs.Injected() == 0 {
			require.NoError(t, first)
			require.Greater(t, n, 9, "operations seen")
			break
		}
		require.ErrorIs(t, first, syscall.EIO, "operation %d", n)
		_, err := mem.CrashClone(nil, vfs.Strict).Stat("a/b")
		require.NoError(t, err, "operation %d", n)
	}
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("a"))
	foreign := errorfs.If(errorfs.All(errorfs.Kind(vfs.OpSyncDir), errorfs.OnNth(1)), syscall.EACCES)
	require.NoError(t, vfs.MkdirDurable(errorfs.Wrap(mem, foreign), "a/b"))
}

func TestReadFile(t *testing.T) {
	mem := vfs.NewMem()
	put(t, mem, "f", "12345")
	for _, limit := range []int64{5, 6, 1 << 40} {
		data, err := vfs.ReadFile(mem, "f", limit)
		require.NoError(t, err)
		require.Equal(t, "12345", string(data))
	}
	_, err := vfs.ReadFile(mem, "f", 4)
	require.ErrorIs(t, err, syscall.EFBIG)
	_, err = vfs.ReadFile(mem, "g", 4)
	require.ErrorIs(t, err, fs.ErrNotExist)
	script{t, mem}.truncate("f", 1<<36)
	_, err = vfs.ReadFile(mem, "f", 1<<20)
	require.ErrorIs(t, err, syscall.EFBIG, "a sparse file takes no memory")
	require.Zero(t, mem.Handles())
}

func TestPacedWriter(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mem := vfs.NewMem()
		f, err := mem.Create("f")
		require.NoError(t, err)
		step := []int{1, 512, 1000, 4096, 0}[rng.IntN(5)]
		limit := step
		if step == 0 {
			limit = vfs.MaxPacedStep
		}
		unsynced := 0
		mem.OnOp(func(_ int, op vfs.Op) error {
			switch op.Kind {
			case vfs.OpWriteAt:
				unsynced += int(op.Size)
			case vfs.OpDatasync, vfs.OpSync:
				unsynced = 0
			}
			require.LessOrEqual(t, unsynced, limit, "seed %d", seed)
			return nil
		})
		w := vfs.NewPacedWriter(f, step)
		var want []byte
		for range rng.IntN(20) {
			p := make([]byte, rng.IntN(3*max(limit, 10)/10))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			n, err := w.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), n)
			want = append(want, p...)
			require.EqualValues(t, len(want), w.Size())
			require.Equal(t, xxhash.Sum64(want), w.Sum64())
		}
		require.NoError(t, w.Finish())
		require.NoError(t, mem.SyncDir("."))
		require.True(t, bytes.Equal(want, mem.CrashClone(nil, vfs.Strict).Dump()["f"]), "seed %d", seed)
		require.EqualValues(t, len(want), w.Size())

		_, err = w.Write([]byte("x"))
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, w.Finish(), fs.ErrClosed)
	}
}

// The first error is final: nothing is written or synced after it.
func TestPacedWriterErrors(t *testing.T) {
	for n := 1; ; n++ {
		mem := vfs.NewMem()
		errs := errorfs.Count(errorfs.If(errorfs.OnNth(n), errorfs.Short(100, syscall.ENOSPC)))
		armed := errorfs.Toggle(errs)
		f, err := errorfs.Wrap(mem, armed).Create("f")
		require.NoError(t, err)
		armed.On()
		w := vfs.NewPacedWriter(f, 1000)
		writeErr := error(nil)
		for range 5 {
			_, err := w.Write([]byte(strings.Repeat("x", 700)))
			writeErr = errors.Join(writeErr, err)
		}
		finishErr := w.Finish()
		if errs.Injected() == 0 {
			require.NoError(t, errors.Join(writeErr, finishErr))
			require.Equal(t, 9, n, "4 writes, 3 flushes and 1 sync")
			return
		}
		require.ErrorIs(t, finishErr, syscall.ENOSPC)
		require.ErrorIs(t, w.Finish(), syscall.ENOSPC)
		require.Equal(t, n, errs.Seen(), "nothing runs after the error")
	}
}
