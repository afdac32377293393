package vfs_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// memFile makes a synced file of the given size.
func memFile(b *testing.B, mem *vfs.Mem, size int) vfs.File {
	f, err := mem.Create("f")
	require.NoError(b, err)
	p := make([]byte, 1<<20)
	for off := 0; off < size; off += len(p) {
		write(b, f, string(p), int64(off))
	}
	require.NoError(b, f.Sync())
	require.NoError(b, mem.SyncDir("."))
	b.Cleanup(func() { f.Close() })
	return f
}

func BenchmarkMemWriteDatasync(b *testing.B) {
	f := memFile(b, vfs.NewMem(), 16<<20)
	p := make([]byte, 512)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := f.WriteAt(p, int64(i%30000)*512); err != nil {
			b.Fatal(err)
		}
		if err := f.Datasync(); err != nil {
			b.Fatal(err)
		}
	}
}

// A test takes a clone at every operation, so a clone must not cost what the
// file system holds.
func BenchmarkCrashClone(b *testing.B) {
	mem := vfs.NewMem()
	f := memFile(b, mem, 64<<20)
	rng := rand.New(rand.NewPCG(1, 1))
	p := make([]byte, 64<<10)
	for i := 0; b.Loop(); i++ {
		write(b, f, string(p), int64(i%1000)<<16)
		mem.CrashClone(rng, vfs.Random)
		if i%16 == 0 {
			require.NoError(b, f.Sync())
		}
	}
}

func BenchmarkPacedWriter(b *testing.B) {
	mem := vfs.NewMem()
	p := make([]byte, 4096)
	b.SetBytes(16 << 20)
	for b.Loop() {
		f, err := mem.Create("f")
		require.NoError(b, err)
		w := vfs.NewPacedWriter(f, 0)
		for range 4096 {
			w.Write(p)
		}
		require.NoError(b, w.Finish())
		require.NoError(b, f.Close())
		require.NoError(b, mem.Remove("f"))
	}
}
