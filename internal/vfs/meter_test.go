package vfs_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// TestMeterModel: after any sequence of operations the meter says what a walk
// of the directory finds, also if it came to a directory with files.
func TestMeterModel(t *testing.T) {
	for seed := range uint64(20) {
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("/db/log"))
		require.NoError(t, mem.MkdirAll("/db/ckpt/1"))
		r := rand.New(rand.NewPCG(seed, 1))
		work(t, mem, r, 30)
		m := vfs.NewMeter(mem, "/db")
		work(t, m, r, 3)
		require.NoError(t, m.Survey())
		for range 50 {
			work(t, m, r, 4)
			require.Equal(t, sizeOf(t, mem, "/db"), m.Total())
			require.Equal(t, sizeOf(t, mem, "/db/log"), m.Bytes("log"))
			require.Equal(t, sizeOf(t, mem, "/db/ckpt"), m.Bytes("ckpt"))
		}
		require.NoError(t, m.Survey())
		require.Equal(t, sizeOf(t, mem, "/db"), m.Total(), "what is known is not counted again")
	}
}

// work does random operations; those that fail change nothing.
func work(t *testing.T, fs vfs.FS, r *rand.Rand, steps int) {
	name := func() string {
		return filepath.Join("/db", []string{"", "log", "ckpt/1"}[r.IntN(3)], fmt.Sprint(r.IntN(4)))
	}
	for range steps {
		switch path := name(); r.IntN(5) {
		case 0:
			_ = fs.Remove(path)
		case 1:
			_ = fs.Rename(path, name())
		default:
			f, err := fs.Create(path)
			if err != nil {
				f, err = fs.Open(path)
			}
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, r.IntN(100)), r.Int64N(100))
			require.NoError(t, err)
			switch r.IntN(4) {
			case 0:
				require.NoError(t, f.Truncate(r.Int64N(150)))
			case 1:
				require.NoError(t, fs.Remove(path))
				_, err = f.WriteAt(make([]byte, 300), 0)
				require.NoError(t, err)
			}
			require.NoError(t, f.Close())
		}
	}
}

func sizeOf(t *testing.T, fs vfs.FS, path string) (sum int64) {
	info, err := fs.Stat(path)
	require.NoError(t, err)
	if !info.Dir {
		return info.Size
	}
	names, err := fs.List(path)
	require.NoError(t, err)
	for _, name := range names {
		sum += sizeOf(t, fs, filepath.Join(path, name))
	}
	return sum
}

func TestMeterMapped(t *testing.T) {
	m := vfs.NewMeter(vfs.NewMem(), "/db")
	require.NoError(t, m.MkdirAll("/db"))
	f, err := m.Create("/db/a")
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 100), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	var maps [2]vfs.Mapping
	for i := range maps {
		maps[i], err = m.Map("/db/a", 100)
		require.NoError(t, err)
	}
	require.EqualValues(t, 200, m.Mapped())
	require.NoError(t, maps[0].Close())
	require.NoError(t, maps[0].Close())
	require.EqualValues(t, 100, m.Mapped())
	require.NoError(t, maps[1].Close())
	require.Zero(t, m.Mapped())
}
