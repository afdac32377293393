package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// A disk that lies: it reports success for a sync that it did not do.
func TestHookPretendsSuccess(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("A"))
	lying := vfs.Wrap(mem, func(op vfs.Op, do func(vfs.Op) error) error {
		if op.Kind == vfs.OpSync {
			return nil
		}
		return do(op)
	})
	f, err := lying.Open("f")
	require.NoError(t, err)
	write(t, f, sectors("B"), 0)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.Equal(t, "f B", show(mem))
	require.Equal(t, "f A", show(mem.CrashClone(nil, vfs.Strict)))
}

func TestHookCutsTransfers(t *testing.T) {
	mem := vfs.NewMem()
	put(t, mem, "f", "0123456789")
	short := vfs.Wrap(mem, func(op vfs.Op, do func(vfs.Op) error) error {
		op.Size /= 2
		return do(op)
	})
	f, err := short.Open("f")
	require.NoError(t, err)
	closeFile(t, f)
	p := make([]byte, 8)
	n, err := f.ReadAt(p, 0)
	require.Equal(t, 4, n)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "fewer bytes are never without an error")
	n, err = f.WriteAt([]byte("abcdef"), 0)
	require.Equal(t, 3, n)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "abc3456789", get(t, mem, "f"))
}

// growing reports a file larger than what can be read of it, as one that is
// truncated meanwhile.
type growing struct{ vfs.FS }

type growingFile struct{ vfs.File }

func (g growing) OpenRead(name string) (vfs.File, error) {
	f, err := g.FS.OpenRead(name)
	return growingFile{f}, err
}

func (f growingFile) Size() (int64, error) {
	size, err := f.File.Size()
	return size + 1, err
}

func TestWholeReadsOfAShrinkingFile(t *testing.T) {
	mem := vfs.NewMem()
	put(t, mem, "f", "0123456789")
	_, err := vfs.ReadFile(growing{mem}, "f", 100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = vfs.NoMap(growing{mem}).Map("f", 11)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "f")
	require.Zero(t, mem.Handles())
}

func TestMemRefusesHugeFiles(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("f")
	require.NoError(t, err)
	closeFile(t, f)
	_, err = f.WriteAt([]byte("x"), 1<<62)
	require.ErrorIs(t, err, syscall.EFBIG)
	_, err = f.WriteAt([]byte("x"), 1<<36)
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorIs(t, f.Truncate(1<<36+1), syscall.EFBIG)
	require.Equal(t, "", content(t, f))
}

func TestMemRoot(t *testing.T) {
	mem := vfs.NewMem()
	for _, root := range []string{"", ".", "/", "..", "a/.."} {
		require.ErrorIs(t, mem.Remove(root), fs.ErrInvalid)
		require.ErrorIs(t, mem.Rename(root, "x"), fs.ErrInvalid)
		_, err := mem.Create(root)
		require.ErrorIs(t, err, fs.ErrInvalid)
		info, err := mem.Stat(root)
		require.NoError(t, err)
		require.True(t, info.Dir)
	}
	put(t, mem, "/f", "abc")
	require.Equal(t, "abc", get(t, mem, "./f"), "absolute and relative names are one")
	put(t, mem, "f2", "")
	require.Error(t, mem.Rename("f2", "f/below a file"))
	require.Error(t, mem.Remove("f/below a file"))
}

func TestKinds(t *testing.T) {
	names := map[string]bool{}
	mutating := 0
	for kind := vfs.OpCreate; kind <= vfs.OpDropCache; kind++ {
		require.NotEmpty(t, kind.String(), "kind %d", kind)
		require.False(t, names[kind.String()], "%v", kind)
		names[kind.String()] = true
		if kind.Mutates() {
			mutating++
		}
	}
	require.Equal(t, 9, mutating)
}

func TestOpFail(t *testing.T) {
	cause := errors.New("cause")
	require.NoError(t, vfs.Op{Kind: vfs.OpSync, Path: "f"}.Fail(nil))
	require.NoError(t, vfs.Op{Kind: vfs.OpRename, Path: "f"}.Fail(nil))
	require.EqualError(t, vfs.Op{Kind: vfs.OpSync, Path: "f"}.Fail(cause), "sync f: cause")
	require.EqualError(t, vfs.Op{Kind: vfs.OpRename, Path: "f", To: "g"}.Fail(cause), "rename f g: cause")
}
