package indextest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/vfs"
)

func checkpointCases() []testCase {
	return []testCase{
		{name: "open without files", run: openWithoutFiles},
		{name: "checkpoint and reopen", persistent: true, run: checkpointAndReopen},
		{name: "the checkpoint before the last", persistent: true, run: checkpointBefore},
		{name: "abandoned checkpoints", persistent: true, run: checkpointAbandoned},
		{name: "checkpoint of a bulk load", persistent: true, run: checkpointOfLoad},
		{name: "checkpoint under load", persistent: true, run: checkpointUnderLoad},
		{name: "damaged files", persistent: true, run: damagedFiles},
	}
}

// store makes the files of checkpoints in a directory.
type store struct {
	t   T
	fs  vfs.FS
	dir string
}

func (f *fixture) store() *store { return &store{f.t, f.spec.FS, f.t.TempDir()} }

func (st *store) create(n uint64) func(string) (vfs.File, error) {
	return func(ext string) (vfs.File, error) {
		return st.fs.Create(filepath.Join(st.dir, fmt.Sprintf("%d-index.%s", n, ext)))
	}
}

// write runs a capture to its end and checks what it says about its files.
func (st *store) write(c index.Capture, n uint64) []index.FileInfo {
	files, err := c.Write(context.Background(), st.create(n))
	require.NoError(st.t, err)
	for _, info := range files {
		st.describes(info)
		require.LessOrEqual(st.t, info.Checkpoint, n)
	}
	return files
}

func (st *store) describes(info index.FileInfo) {
	data := st.read(info.Name)
	require.EqualValues(st.t, len(data), info.Size, info.Name)
	require.Equal(st.t, xxhash.Sum64(data), info.Sum, info.Name)
}

func (st *store) read(name string) []byte {
	file, err := st.fs.OpenRead(name)
	require.NoError(st.t, err)
	defer file.Close()
	size, err := file.Size()
	require.NoError(st.t, err)
	data, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	require.NoError(st.t, err)
	return data
}

// checkpoint takes a whole checkpoint.
func (st *store) checkpoint(ix index.Index, n uint64) []index.FileInfo {
	c, err := ix.(index.Checkpointer).BeginCheckpoint(context.Background(), n)
	require.NoError(st.t, err)
	files := st.write(c, n)
	c.Published()
	return files
}

// reopen opens an index from files and closes it at the end of the case.
func (f *fixture) reopen(files []index.FileInfo) *session {
	ix, err := f.strategy.Open(context.Background(), f.spec, files)
	require.NoError(f.t, err)
	return f.adopt(ix)
}

func openWithoutFiles(t T, f *fixture) {
	_, err := f.strategy.Open(context.Background(), f.spec, nil)
	require.ErrorIs(t, err, index.ErrNoCheckpoint)
}

// checkpointAndReopen goes on from a reopened index again and again.
func checkpointAndReopen(t T, f *fixture) {
	st := f.store()
	for _, space := range keySpaces() {
		s, m := f.create(), &Model{}
		st.dir = f.t.TempDir()
		for n := range uint64(12) {
			for range 150 {
				require.NoError(t, s.randomOperation(m, f.rand, space), space.name)
			}
			files := st.checkpoint(s.ix, n+1)
			require.NoError(t, s.equals(m), space.name)
			if n%3 == 2 {
				s = f.reopen(files)
				require.NoError(t, s.equals(m), space.name)
			}
		}
	}
}

// checkpointBefore opens each of the last two checkpoints while the index goes
// on.
func checkpointBefore(t T, f *fixture) {
	s, m, st := f.create(), &Model{}, f.store()
	space := keySpace{draw: wideKey}
	var before []index.FileInfo
	var modelBefore *Model
	for n := range uint64(8) {
		for range 500 {
			require.NoError(t, s.randomOperation(m, f.rand, space))
		}
		files := st.checkpoint(s.ix, n+1)
		require.NoError(t, f.reopen(files).equals(m))
		if n > 0 {
			require.NoError(t, f.reopen(before).equals(modelBefore))
		}
		before, modelBefore = files, m.Clone()
	}
}

// checkpointAbandoned abandons captures before and after they wrote, between
// checkpoints that must be complete all the same.
func checkpointAbandoned(t T, f *fixture) {
	s, m, st := f.create(), &Model{}, f.store()
	space := keySpace{draw: wideKey}
	for n := uint64(1); n < 20; n++ {
		for range 200 {
			require.NoError(t, s.randomOperation(m, f.rand, space))
		}
		if n%3 == 0 {
			require.NoError(t, f.reopen(st.checkpoint(s.ix, n)).equals(m))
			continue
		}
		c, err := s.ix.(index.Checkpointer).BeginCheckpoint(context.Background(), n)
		require.NoError(t, err)
		if n%3 == 1 {
			for _, info := range st.write(c, n) {
				if info.Checkpoint == n {
					require.NoError(t, st.fs.Remove(info.Name))
				}
			}
		}
		c.Abandon()
		require.NoError(t, s.equals(m))
	}
}

func checkpointOfLoad(t T, f *fixture) {
	m, st := f.randomModel(keySpace{draw: wideKey}, 10_000), f.store()
	s := f.load(m)
	s = f.reopen(st.checkpoint(s.ix, 1))
	require.NoError(t, s.equals(m))
	for range 500 {
		require.NoError(t, s.toggle(m, Entry{wideKey(f.rand), row(1)}))
		require.NoError(t, s.toggle(m, m.entries[f.rand.IntN(m.Len())]))
	}
	require.NoError(t, f.reopen(st.checkpoint(s.ix, 2)).equals(m))
}

// checkpointUnderLoad takes checkpoints while writers churn. What was there
// before the line and stays must be in the files, what was never there not.
func checkpointUnderLoad(t T, f *fixture) {
	s, st := f.create(), f.store()
	lasting := &Model{}
	for k := 0; k < stressKeys; k += 3 {
		e := Entry{stressKey(k), row(stressWriters + 1)}
		lasting.Insert(e)
		require.NoError(t, s.insert(e.Key, e.Row, nil))
	}
	var running atomic.Int32
	running.Store(stressWriters)
	var files [][]index.FileInfo
	models := make([]map[Entry]bool, stressWriters)
	f.parallel(stressWriters+1, func(i int, rng *rand.Rand) error {
		if i == stressWriters {
			for running.Load() > 0 {
				files = append(files, st.checkpoint(s.ix, uint64(len(files)+1)))
			}
			return nil
		}
		defer running.Add(-1)
		models[i] = map[Entry]bool{}
		return churn(f.session(s.ix), models[i], row(i+1), rng)
	})
	for _, checkpoint := range files[max(0, len(files)-2):] {
		require.NoError(t, captured(f.reopen(checkpoint), lasting))
	}
	final := map[Entry]bool{}
	for _, m := range append(models, lasting.set()) {
		for e := range m {
			final[e] = true
		}
	}
	m := modelOf(final)
	require.NoError(t, s.equals(&m))
	require.NoError(t, f.reopen(st.checkpoint(s.ix, uint64(len(files)+1))).equals(&m))
}

// captured checks an index that was captured under stress.
func captured(s *session, lasting *Model) error {
	got, err := s.scan(index.Range{})
	if err != nil {
		return err
	}
	if err := inOrder(got, index.Range{}); err != nil {
		return err
	}
	kept := &Model{}
	for _, e := range got {
		if e.Row == row(stressWriters+1) {
			kept.entries = append(kept.entries, e)
		}
	}
	return sameEntries(lasting.entries, kept.entries)
}

// damagedFiles changes, cuts and removes files. Opening fails, or every answer
// is right or an error.
func damagedFiles(t T, f *fixture) {
	m, st := f.randomModel(keySpace{draw: wideKey}, 3000), f.store()
	files := st.checkpoint(f.load(m).ix, 1)
	for range 60 {
		info := files[f.rand.IntN(len(files))]
		intact := st.read(info.Name)
		damaged := damage(f.rand, intact)
		st.replace(info.Name, damaged)
		f.openDamaged(files, m)
		st.replace(info.Name, intact)
	}
	require.NoError(t, st.fs.Remove(files[0].Name))
	_, err := f.strategy.Open(context.Background(), f.spec, files)
	require.Error(t, err, "a file is missing")
}

// damage flips a bit, cuts, or clears a sector.
func damage(rng *rand.Rand, intact []byte) []byte {
	data := append([]byte(nil), intact...)
	at := rng.IntN(len(data))
	switch rng.IntN(4) {
	case 0:
		return data[:at]
	case 1:
		clear(data[at&^511 : min(len(data), at&^511+512)])
	default:
		data[at] ^= 1 << rng.IntN(8)
	}
	return data
}

func (st *store) replace(name string, data []byte) {
	require.NoError(st.t, st.fs.Remove(name))
	file, err := st.fs.Create(name)
	require.NoError(st.t, err)
	_, err = file.WriteAt(data, 0)
	require.NoError(st.t, err)
	require.NoError(st.t, file.Close())
}

// openDamaged wants no wrong answer.
func (f *fixture) openDamaged(files []index.FileInfo, m *Model) {
	ix, err := f.strategy.Open(context.Background(), f.spec, files)
	if err != nil {
		return
	}
	defer func() { require.NoError(f.t, ix.Close()) }()
	s := f.session(ix)
	if got, err := s.scan(index.Range{}); err == nil {
		require.NoError(f.t, sameEntries(m.entries, got))
	}
	for _, i := range f.rand.Perm(m.Len())[:200] {
		key := m.entries[i].Key
		if got, err := s.lookup(key); err == nil {
			require.Equal(f.t, m.Rows(key), got)
		}
	}
}
