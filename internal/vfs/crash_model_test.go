package vfs_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// modelFile is what the model knows of a file: each content since the last
// sync, the synced one first and the current one last.
type modelFile struct{ states [][]byte }

func (f *modelFile) current() []byte { return f.states[len(f.states)-1] }
func (f *modelFile) synced() []byte  { return f.states[0] }
func (f *modelFile) sync()           { f.states = [][]byte{f.current()} }

// edit appends a new state.
func (f *modelFile) edit(change func(p []byte) []byte) {
	f.states = append(f.states, change(slices.Clone(f.current())))
}

// allows reports whether a crash may leave content of this file: a size between
// those that it had, and each sector as in one of its states.
func (f *modelFile) allows(content []byte) bool {
	bySize := func(a, b []byte) int { return len(a) - len(b) }
	if len(content) < len(slices.MinFunc(f.states, bySize)) || len(content) > len(slices.MaxFunc(f.states, bySize)) {
		return false
	}
	for off := 0; off < len(content); off += 512 {
		sector := content[off:min(off+512, len(content))]
		same := func(state []byte) bool { return bytes.Equal(cut(state, off, len(sector)), sector) }
		if !slices.ContainsFunc(f.states, same) {
			return false
		}
	}
	return true
}

// cut returns n bytes of p from off, with zeros behind its end.
func cut(p []byte, off, n int) []byte {
	out := make([]byte, n)
	if off < len(p) {
		copy(out, p[off:])
	}
	return out
}

// modelName is a name with the files it stood for since the last sync of its
// directory, nil for none; the synced one first and the current one last.
type modelName []*modelFile

func (n modelName) current() *modelFile { return n[len(n)-1] }

// crashModel runs random operations on a Mem and on itself. Two directories
// exist, durable, from the start.
type crashModel struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *vfs.Mem
	names map[string]modelName
	moved []modelMove
}

// modelMove is a rename into another directory, unsynced on both sides.
type modelMove struct{ from, to string }

var modelDirs = []string{"d", "e"}

func newCrashModel(t *testing.T, seed uint64) *crashModel {
	m := &crashModel{t: t, rng: rand.New(rand.NewPCG(seed, 0)), mem: vfs.NewMem(), names: map[string]modelName{}}
	for _, dir := range modelDirs {
		require.NoError(t, m.mem.MkdirAll(dir))
		for i := range 4 {
			m.names[fmt.Sprintf("%s/%d", dir, i)] = modelName{nil}
		}
	}
	require.NoError(t, m.mem.SyncDir("."))
	return m
}

func (m *crashModel) set(name string, f *modelFile) { m.names[name] = append(m.names[name], f) }

// pick returns a random name, preferably one that stands for a file or not.
func (m *crashModel) pick(taken bool) string {
	names := slices.Sorted(maps.Keys(m.names))
	for range 8 {
		name := names[m.rng.IntN(len(names))]
		if (m.names[name].current() != nil) == taken {
			return name
		}
	}
	return names[0]
}

func (m *crashModel) step() {
	switch p := m.rng.IntN(100); {
	case p < 15:
		m.create(m.pick(false))
	case p < 50:
		m.write(m.pick(true))
	case p < 60:
		m.truncate(m.pick(true))
	case p < 70:
		m.sync(m.pick(true))
	case p < 80:
		m.rename(m.pick(true), m.pick(m.rng.IntN(2) == 0))
	case p < 85:
		m.remove(m.pick(true))
	case p < 95:
		m.syncDir(modelDirs[m.rng.IntN(2)])
	default:
		m.failWriteback(m.pick(true))
	}
}

func (m *crashModel) create(name string) {
	f, err := m.mem.Create(name)
	if m.names[name].current() != nil {
		require.Error(m.t, err)
		return
	}
	require.NoError(m.t, err)
	require.NoError(m.t, f.Close())
	m.set(name, &modelFile{states: [][]byte{{}}})
}

// open runs change on the file of a name, if it has one.
func (m *crashModel) open(name string, change func(f vfs.File, model *modelFile)) {
	f, err := m.mem.Open(name)
	if m.names[name].current() == nil {
		require.Error(m.t, err)
		return
	}
	require.NoError(m.t, err)
	change(f, m.names[name].current())
	require.NoError(m.t, f.Close())
}

func (m *crashModel) write(name string) {
	off, p := m.rng.IntN(9000), make([]byte, 1+m.rng.IntN(3000))
	if m.rng.IntN(2) == 0 {
		off = off / 512 * 512
	}
	for i := range p {
		p[i] = byte(m.rng.Uint32())
	}
	m.open(name, func(f vfs.File, model *modelFile) {
		write(m.t, f, string(p), int64(off))
		model.edit(func(content []byte) []byte {
			content = append(content, make([]byte, max(0, off+len(p)-len(content)))...)
			copy(content[off:], p)
			return content
		})
	})
}

func (m *crashModel) truncate(name string) {
	size := m.rng.IntN(12000)
	m.open(name, func(f vfs.File, model *modelFile) {
		require.NoError(m.t, f.Truncate(int64(size)))
		model.edit(func(content []byte) []byte { return cut(content, 0, size) })
	})
}

func (m *crashModel) sync(name string) {
	m.open(name, func(f vfs.File, model *modelFile) {
		require.NoError(m.t, f.Sync())
		model.sync()
	})
}

// failWriteback drops what is unsynced, and syncs to make the size durable: the
// touched sectors are as they were before, and all others were so already.
func (m *crashModel) failWriteback(name string) {
	m.open(name, func(f vfs.File, model *modelFile) {
		require.NoError(m.t, m.mem.DropUnsynced(name))
		require.NoError(m.t, f.Sync())
		model.states = [][]byte{cut(model.synced(), 0, len(model.current()))}
	})
}

func (m *crashModel) rename(from, to string) {
	file := m.names[from].current()
	err := m.mem.Rename(from, to)
	if file == nil {
		require.Error(m.t, err)
		return
	}
	require.NoError(m.t, err)
	if from == to {
		return
	}
	m.set(to, file)
	m.set(from, nil)
	if dirOf(from) != dirOf(to) {
		m.moved = append(m.moved, modelMove{from, to})
	}
}

func (m *crashModel) remove(name string) {
	err := m.mem.Remove(name)
	if m.names[name].current() == nil {
		require.Error(m.t, err)
		return
	}
	require.NoError(m.t, err)
	m.set(name, nil)
}

// syncDir makes the current entries of dir the only possible ones. Files that
// left it for the other directory are durable there as well; to keep the model
// plain, it syncs that directory too when there are any.
func (m *crashModel) syncDir(dir string) {
	dirs := []string{dir}
	if slices.ContainsFunc(m.moved, func(move modelMove) bool { return dirOf(move.from) == dir }) {
		dirs = modelDirs
	}
	for _, dir := range dirs {
		require.NoError(m.t, m.mem.SyncDir(dir))
		for name, states := range m.names {
			if dirOf(name) == dir {
				m.names[name] = modelName{states.current()}
			}
		}
		m.moved = slices.DeleteFunc(m.moved, func(move modelMove) bool { return dirOf(move.from) == dir })
	}
}

func (m *crashModel) check() {
	m.checkExact(m.mem, func(n modelName) *modelFile { return n.current() }, (*modelFile).current)
	m.checkExact(m.mem.CrashClone(nil, vfs.Keep), func(n modelName) *modelFile { return n.current() }, (*modelFile).current)
	m.checkExact(m.mem.CrashClone(nil, vfs.Strict), func(n modelName) *modelFile { return n[0] }, (*modelFile).synced)
	for _, mode := range []vfs.CrashMode{vfs.Random, vfs.NamesFirst, vfs.DataFirst, vfs.DeletesFirst, vfs.LastFirst} {
		m.checkAllowed(mode, m.mem.CrashClone(m.rng, mode).Dump())
	}
}

func (m *crashModel) checkExact(mem *vfs.Mem, which func(modelName) *modelFile, state func(*modelFile) []byte) {
	want := map[string][]byte{"d/": nil, "e/": nil}
	for name, states := range m.names {
		if f := which(states); f != nil {
			want[name] = state(f)
		}
	}
	require.Equal(m.t, want, mem.Dump())
}

func (m *crashModel) checkAllowed(mode vfs.CrashMode, got map[string][]byte) {
	for name, states := range m.names {
		content, there := got[name]
		allowed := func(f *modelFile) bool {
			return f == nil && !there || f != nil && there && f.allows(content)
		}
		require.True(m.t, slices.ContainsFunc(states, allowed), "%v: %s (there: %v, %d bytes)", mode, name, there, len(content))
	}
}

// TestCrashModel compares every state of random histories, and what crashes
// leave of them, with a model that only knows the rules.
func TestCrashModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := newCrashModel(t, seed)
			for range 120 {
				m.step()
				m.check()
			}
		})
	}
}

// TestRenamesLoseNothing moves durable files about: whatever a crash leaves,
// each is there under at least one name.
func TestRenamesLoseNothing(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := vfs.NewMem()
		s := script{t, mem}
		s.mkdir("d")
		s.mkdir("e")
		s.syncDir(".")
		places := map[string]string{}
		for _, content := range []string{"A", "B", "C", "D"} {
			places[content] = "d/" + content
			s.durable("d/"+content, sectors(content))
		}
		for i := range 40 {
			content := string(rune('A' + rng.IntN(4)))
			next := fmt.Sprintf("%s/%d", modelDirs[rng.IntN(2)], i)
			s.rename(places[content], next)
			places[content] = next
			if rng.IntN(4) == 0 {
				s.syncDir(modelDirs[rng.IntN(2)])
			}
			left := show(mem.CrashClone(rng, vfs.Random))
			for content := range places {
				require.Contains(t, left, " "+content, "seed %d, step %d", seed, i)
			}
		}
	}
}
