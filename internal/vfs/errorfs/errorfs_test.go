package errorfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

var errTest = errors.New("the cause")

// run performs every kind of operation once and returns its error by kind.
func run(t *testing.T, fsys vfs.FS, file vfs.File, lock io.Closer) map[vfs.Kind]error {
	errs := map[vfs.Kind]error{}
	keep := func(kind vfs.Kind, c io.Closer, err error) {
		errs[kind] = err
		if err == nil {
			require.NoError(t, c.Close())
		}
	}
	created, err := fsys.Create("d/created")
	keep(vfs.OpCreate, created, err)
	opened, err := fsys.Open("d/f")
	keep(vfs.OpOpen, opened, err)
	opened, err = fsys.OpenRead("d/f")
	keep(vfs.OpOpenRead, opened, err)
	mapped, err := fsys.Map("d/f", 10)
	keep(vfs.OpMap, mapped, err)
	other, err := fsys.Lock("d/f")
	keep(vfs.OpLock, other, err)
	_, errs[vfs.OpList] = fsys.List("d")
	_, errs[vfs.OpStat] = fsys.Stat("d/f")
	errs[vfs.OpMkdirAll] = fsys.MkdirAll("d/e")
	errs[vfs.OpSyncDir] = fsys.SyncDir("d")
	errs[vfs.OpRename] = fsys.Rename("d/g", "d/h")
	errs[vfs.OpRemove] = fsys.Remove("d/x")
	_, errs[vfs.OpReadAt] = file.ReadAt(make([]byte, 2), 0)
	_, errs[vfs.OpWriteAt] = file.WriteAt(make([]byte, 2), 0)
	_, errs[vfs.OpSize] = file.Size()
	errs[vfs.OpTruncate] = file.Truncate(100)
	errs[vfs.OpSync] = file.Sync()
	errs[vfs.OpDatasync] = file.Datasync()
	errs[vfs.OpDropCache] = file.DropCache()
	errs[vfs.OpFillCache] = file.FillCache(0, 1)
	errs[vfs.OpClose] = lock.Close()
	require.NoError(t, errs[vfs.OpClose], "closes pass")
	delete(errs, vfs.OpClose)
	return errs
}

func newMem(t *testing.T) *vfs.Mem {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("d"))
	require.NoError(t, mem.SyncDir("."))
	for _, name := range []string{"d/f", "d/g", "d/x"} {
		require.NoError(t, vfs.WriteFileAtomic(mem, name, []byte("0123456789")))
	}
	t.Cleanup(func() { require.Zero(t, mem.Handles(), "handles left open") })
	return mem
}

func open(t *testing.T, fsys vfs.FS) vfs.File {
	f, err := fsys.Open("d/f")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestEveryKindFails(t *testing.T) {
	mem := newMem(t)
	before := mem.Dump()
	counter := errorfs.Count(errorfs.If(errorfs.Not(errorfs.Kind(vfs.OpClose)), errTest))
	armed := errorfs.Toggle(counter)
	fsys := errorfs.Wrap(mem, armed)
	file := open(t, fsys)
	lock, err := fsys.Lock("d/LOCK")
	require.NoError(t, err)
	require.NoError(t, mem.Remove("d/LOCK"))
	ops := mem.Ops()
	armed.On()
	errs := run(t, fsys, file, lock)
	armed.Off()
	for kind, err := range errs {
		require.ErrorIs(t, err, errorfs.ErrInjected, "%v", kind)
		require.ErrorIs(t, err, errTest, "%v", kind)
		require.ErrorContains(t, err, "d", "%v: the path", kind)
	}
	require.Len(t, errs, int(vfs.OpFillCache), "all kinds but close")
	require.Equal(t, len(errs), counter.Injected())
	require.Equal(t, len(errs)+1, counter.Seen())
	require.Equal(t, before, mem.Dump(), "failed operations do nothing")
	require.Equal(t, ops, mem.Ops(), "failed operations do not reach the file system")
}

// A late error comes after the effect, and what the operation opened is closed.
func TestLate(t *testing.T) {
	mem := newMem(t)
	fsys := errorfs.Wrap(mem, errorfs.If(errorfs.Not(errorfs.Kind(vfs.OpClose)), errorfs.Late(errTest)))
	file := open(t, errorfs.Wrap(mem, errorfs.First()))
	lock, err := mem.Lock("d/LOCK")
	require.NoError(t, err)
	for kind, err := range run(t, fsys, file, lock) {
		if kind < vfs.OpReadAt {
			require.ErrorIs(t, err, errTest, "%v", kind)
		}
	}
	dump := mem.Dump()
	for _, name := range []string{"d/created", "d/e/", "d/h"} {
		require.Contains(t, dump, name)
	}
	require.NotContains(t, dump, "d/g")
	require.NotContains(t, dump, "d/x")
}

func TestClosesCloseAllTheSame(t *testing.T) {
	mem := newMem(t)
	counter := errorfs.Count(errorfs.If(errorfs.Kind(vfs.OpClose), errTest))
	fsys := errorfs.Wrap(mem, counter)
	f, err := fsys.Open("d/f")
	require.NoError(t, err)
	require.ErrorIs(t, f.Close(), errTest)
	lock, err := fsys.Lock("d/f")
	require.NoError(t, err)
	require.ErrorIs(t, lock.Close(), errTest)
	require.Equal(t, 2, counter.Injected())
	require.Zero(t, mem.Handles())
}

func TestShort(t *testing.T) {
	cases := []struct{ size, short, want int }{
		{8, 3, 3}, {8, 0, 0}, {8, 7, 7}, {8, 8, 7}, {8, 100, 7}, {1, 1, 0}, {0, 1, 0},
	}
	for _, c := range cases {
		mem := newMem(t)
		f := open(t, errorfs.Wrap(mem, errorfs.If(errorfs.Kind(vfs.OpWriteAt, vfs.OpReadAt, vfs.OpSync), errorfs.Short(int64(c.short), syscall.ENOSPC))))
		p := make([]byte, c.size)
		n, err := f.ReadAt(p, 0)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, c.want, n)
		require.Equal(t, "0123456789"[:n], string(p[:n]))
		n, err = f.WriteAt([]byte("abcdefgh")[:c.size], 0)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, c.want, n)
		require.Equal(t, "abcdefgh"[:n]+"0123456789"[n:], string(mem.Dump()["d/f"]))
		require.ErrorIs(t, f.Sync(), syscall.ENOSPC, "other operations fail plainly")
	}
}

// The errors of the file system itself win over those injected late.
func TestRealErrorsPass(t *testing.T) {
	fsys := errorfs.Wrap(newMem(t), errorfs.If(errorfs.Always, errorfs.Late(errTest)))
	require.ErrorIs(t, fsys.Remove("missing"), fs.ErrNotExist)
	require.NotErrorIs(t, fsys.Remove("missing"), errTest)
}

// After the failed fsync the data is gone from the medium, and with DropUnsynced
// from the cache too; the sync that then succeeds does not bring it back.
func TestFailedSyncLosesData(t *testing.T) {
	mem := newMem(t)
	counter := errorfs.Count(errorfs.If(errorfs.All(errorfs.Kind(vfs.OpDatasync), errorfs.OnNth(1)), syscall.EIO))
	fsys := errorfs.Wrap(mem, errorfs.Then(counter, func(op vfs.Op) error { return mem.DropUnsynced(op.Path) }))
	f := open(t, fsys)
	_, err := f.WriteAt([]byte("lost"), 0)
	require.NoError(t, err)
	require.ErrorIs(t, f.Datasync(), syscall.EIO)
	require.NoError(t, f.Datasync())
	require.Equal(t, 1, counter.Injected())
	require.Equal(t, "0123456789", string(mem.Dump()["d/f"]))
	require.Equal(t, "0123456789", string(mem.CrashClone(nil, vfs.Strict).Dump()["d/f"]))
}

func TestThenReportsItsOwnError(t *testing.T) {
	effect := errors.New("effect failed")
	inj := errorfs.Then(errorfs.If(errorfs.Always, errTest), func(vfs.Op) error { return effect })
	err := errorfs.Wrap(newMem(t), inj).Remove("d/f")
	require.ErrorIs(t, err, errTest)
	require.ErrorIs(t, err, effect)
}

func op(kind vfs.Kind, path string) vfs.Op { return vfs.Op{Kind: kind, Path: path} }

func TestMatches(t *testing.T) {
	write, sync := op(vfs.OpWriteAt, "/tmp/db/log/00-1.log"), op(vfs.OpSync, "MANIFEST-1")
	rename := vfs.Op{Kind: vfs.OpRename, Path: "CURRENT.tmp", To: "db/CURRENT"}
	cases := []struct {
		name                string
		match               errorfs.Match
		write, sync, rename bool
	}{
		{"always", errorfs.Always, true, true, true},
		{"mutating", errorfs.Mutating, true, true, true},
		{"kind", errorfs.Kind(vfs.OpWriteAt, vfs.OpRename), true, false, true},
		{"no kind", errorfs.Kind(), false, false, false},
		{"base name", errorfs.PathGlob("*.log"), true, false, false},
		{"directory", errorfs.PathGlob("log/*"), true, false, false},
		{"another directory", errorfs.PathGlob("ckpt/*"), false, false, false},
		{"deeper than the path", errorfs.PathGlob("*/MANIFEST-*"), false, false, false},
		{"either name of a rename", errorfs.PathGlob("CURRENT"), false, false, true},
		{"temporary", errorfs.PathGlob("*.tmp"), false, false, true},
		{"all", errorfs.All(errorfs.Mutating, errorfs.PathGlob("*.log")), true, false, false},
		{"any", errorfs.Any(errorfs.Kind(vfs.OpSync), errorfs.PathGlob("*.log")), true, true, false},
		{"not", errorfs.Not(errorfs.Kind(vfs.OpSync)), true, false, true},
		{"empty all", errorfs.All(), true, true, true},
		{"empty any", errorfs.Any(), false, false, false},
	}
	for _, c := range cases {
		got := fmt.Sprint(c.match(write), c.match(sync), c.match(rename))
		require.Equal(t, fmt.Sprint(c.write, c.sync, c.rename), got, c.name)
	}
	require.False(t, errorfs.Mutating(op(vfs.OpReadAt, "x")))
	require.Panics(t, func() { errorfs.PathGlob("[") }, "a pattern that can match nothing")
}

func TestCountingMatches(t *testing.T) {
	selected := func(m errorfs.Match) (out []int) {
		for i := 1; i <= 6; i++ {
			if m(op(vfs.OpSync, "f")) {
				out = append(out, i)
			}
			m(op(vfs.OpStat, "f"))
		}
		return out
	}
	onSyncs := func(m errorfs.Match) errorfs.Match { return errorfs.All(errorfs.Kind(vfs.OpSync), m) }
	require.Equal(t, []int{2}, selected(onSyncs(errorfs.OnNth(2))))
	require.Equal(t, []int{4, 5, 6}, selected(onSyncs(errorfs.FromNth(4))))
	require.Equal(t, []int{2}, selected(errorfs.OnNth(3)), "counts the other kind too")
}

func TestProbability(t *testing.T) {
	count := func(m errorfs.Match) (n int) {
		for range 10000 {
			if m(vfs.Op{}) {
				n++
			}
		}
		return n
	}
	require.Zero(t, count(errorfs.Probability(0, 1)))
	require.Equal(t, 10000, count(errorfs.Probability(1, 1)))
	require.InDelta(t, 3000, count(errorfs.Probability(0.3, 1)), 200)
	require.Equal(t, count(errorfs.Probability(0.5, 7)), count(errorfs.Probability(0.5, 7)), "the seed fixes it")
}

func TestFirst(t *testing.T) {
	second := errorfs.Count(errorfs.If(errorfs.Always, errTest))
	inj := errorfs.First(errorfs.If(errorfs.OnNth(1), io.ErrUnexpectedEOF), second)
	require.Equal(t, io.ErrUnexpectedEOF, inj.MaybeError(vfs.Op{}))
	require.Equal(t, errTest, inj.MaybeError(vfs.Op{}))
	require.Equal(t, 1, second.Seen())
}
