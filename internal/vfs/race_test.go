package vfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// TestMemConcurrently lets writers, readers and crashes meet on one file, and
// others come and go beside it. Each write is one letter over the same extent,
// which spans pages, so a torn read shows as two letters.
func TestMemConcurrently(t *testing.T) {
	const off, size, rounds = 300, 9000, 200
	mem := vfs.NewMem()
	clones := 0
	mem.OnOp(func(n int, op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			mem.CrashClone(rand.New(rand.NewPCG(uint64(n), 0)), vfs.Random)
			clones++ // by one goroutine only
		}
		return nil
	})
	f, err := mem.Create("shared")
	require.NoError(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("a"), size), off)
	require.NoError(t, err)

	var wg sync.WaitGroup
	parallel := func(work func(i int) error) {
		wg.Go(func() {
			for i := range rounds {
				if err := work(i); err != nil {
					t.Errorf("round %d: %v", i, err)
				}
			}
		})
	}
	for w := range 2 {
		parallel(func(i int) error {
			_, err := f.WriteAt(bytes.Repeat([]byte{byte('a' + (w*13+i)%26)}, size), off)
			return err
		})
		parallel(func(int) error {
			p := make([]byte, size)
			_, err := f.ReadAt(p, off)
			return firstError(err, oneLetter(p))
		})
		parallel(func(i int) error { return comeAndGo(mem, fmt.Sprintf("own-%d", w), i) })
	}
	parallel(func(int) error { return f.Datasync() })
	parallel(func(int) error {
		m, err := mem.Map("shared", off+size)
		if err != nil {
			return err
		}
		return firstError(oneLetter(m.Bytes()[off:]), m.Close())
	})
	parallel(func(int) error { return oneLetter(mem.CrashClone(nil, vfs.Keep).Dump()["shared"][off:]) })
	wg.Wait()
	require.Equal(t, rounds, clones)
	require.NoError(t, f.Close())
	require.Zero(t, mem.Handles())
}

func oneLetter(p []byte) error {
	if !bytes.Equal(p, bytes.Repeat(p[:1], len(p))) {
		return fmt.Errorf("torn read of %d bytes", len(p))
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// comeAndGo uses every operation on files of its own.
func comeAndGo(mem *vfs.Mem, dir string, i int) error {
	name := fmt.Sprintf("%s/%d", dir, i)
	if err := mem.MkdirAll(dir); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(mem, name, []byte("content")); err != nil {
		return err
	}
	lock, err := mem.Lock(name)
	if err != nil {
		return err
	}
	_, statErr := mem.Stat(name)
	_, listErr := mem.List(dir)
	return firstError(statErr, listErr, mem.DropUnsynced(name), lock.Close(), mem.Remove(name))
}
