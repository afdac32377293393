package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CrashMode says which of the states that a crash may leave CrashClone takes.
type CrashMode uint8

const (
	// Strict is a power cut that loses all that was not synced.
	Strict CrashMode = iota
	// Keep is a power cut that comes just after everything was written back.
	Keep
	// Random is a power cut that loses, keeps and tears at random.
	Random
	// Kill is the end of the process only. Readers see all that was written,
	// but what was not synced can still be lost in a later power cut.
	Kill
	// NamesFirst is a power cut after every change of an entry is on the medium
	// and before any content that was not synced is: new files are empty, renamed
	// ones old, removed ones gone.
	NamesFirst
	// DataFirst is the reverse: all content is there, and no change of an entry
	// that was not synced. New files and renames are lost.
	DataFirst
	// DeletesFirst keeps of all that was not synced only the removals.
	DeletesFirst
	// LastFirst is a power cut while all changes of entries are on the medium and
	// of each file the latter half of its unsynced sectors.
	LastFirst
)

func (m CrashMode) String() string {
	return [...]string{"strict", "keep", "random", "kill", "names first", "data first", "deletes first", "last first"}[m]
}

// keepsChange reports whether a change of an entry survives that is not synced.
func (m CrashMode) keepsChange(c *memChange) bool {
	switch m {
	case Keep, NamesFirst, LastFirst:
		return true
	case DeletesFirst:
		return c.node == nil
	}
	return false
}

// CrashClone returns the file system as a crash at this moment would leave it,
// without open files, locks and hook. m goes on unharmed. The outcome follows
// from the state of m, the mode, and in mode Random from rng, which other modes
// do not use. It may be called at any time, also from the OnOp hook.
func (m *Mem) CrashClone(rng *rand.Rand, mode CrashMode) *Mem {
	c := m.clone()
	if mode == Kill {
		return c
	}
	if mode == Random {
		c.journal.settle(keepSome(rng))
	} else {
		c.journal.settle(mode.keepsChange)
	}
	c.journal = nil
	s := settler{c.owner, rng, mode, map[*memNode]bool{}}
	s.dir(c.root)
	c.owner = new(memOwner)
	return c
}

// FailWriteback does to a file what a failed fsync does on many systems: its
// unsynced sectors are taken for written although they are not. Reads return
// them until DropCache, no later sync writes them, a power cut loses them.
func (m *Mem) FailWriteback(name string) error {
	return m.loseDirty(name, (*memNode).failWriteback)
}

// DropUnsynced is FailWriteback on a system that also forgets the sectors at
// once: reads return what is on the medium. The size stays as it is.
func (m *Mem) DropUnsynced(name string) error {
	return m.loseDirty(name, func(n *memNode) {
		n.failWriteback()
		n.dropCache(m.owner)
	})
}

func (m *Mem) loseDirty(name string, how func(*memNode)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.file(name)
	if err != nil {
		return pathError("fail write-back", name, err)
	}
	how(node)
	return nil
}

// clone copies the tree with its unsynced state. The pages are shared, so both
// sides get new owner marks.
func (m *Mem) clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owner = new(memOwner)
	c := NewMem()
	copier := memCopier{}
	c.root = copier.node(m.root)
	c.journal = copier.journal(m.journal)
	return c
}

// memCopier copies nodes deeply. It maps those that it has met to their copies.
type memCopier map[*memNode]*memNode

func (c memCopier) node(n *memNode) *memNode {
	if n == nil || c[n] != nil {
		return c[n]
	}
	if n.isDir() {
		dir := newMemDir()
		c[n] = dir
		c.entries(dir.entries.current, n.entries.current)
		c.entries(dir.entries.synced, n.entries.synced)
		return dir
	}
	file := &memNode{
		current: n.current.clone(), synced: n.synced.clone(),
		dirty: map[int64][]memSector{}, stale: maps.Clone(n.stale),
		minSize: n.minSize, maxSize: n.maxSize,
	}
	for i, states := range n.dirty {
		file.dirty[i] = slices.Clone(states)
	}
	c[n] = file
	return file
}

func (c memCopier) entries(dst, src map[string]*memNode) {
	for name, n := range src {
		dst[name] = c.node(n)
	}
}

func (c memCopier) journal(j memJournal) memJournal {
	copies := map[*memChange]*memChange{}
	var out memJournal
	for _, change := range j {
		// needs comes first, unless it is durable or replaced and so no longer here.
		dup := &memChange{
			dir: c.node(change.dir), name: change.name, node: c.node(change.node),
			needs: copies[change.needs], removed: c.node(change.removed), dirMove: change.dirMove,
		}
		copies[change] = dup
		out = append(out, dup)
	}
	return out
}

// settler turns a tree with unsynced state into the one that the crash leaves.
type settler struct {
	owner *memOwner
	rng   *rand.Rand
	mode  CrashMode
	done  map[*memNode]bool
}

// dir settles what is below n. What is there under its old and its new name,
// because half of a rename survived, becomes two: nothing here knows hard links.
func (s *settler) dir(n *memNode) {
	e := n.entries
	e.current = e.synced
	for _, name := range slices.Sorted(maps.Keys(e.current)) {
		child := e.current[name]
		if s.done[child] {
			e.current[name] = memCopier{}.node(child)
		} else {
			s.node(child)
		}
	}
	e.synced = maps.Clone(e.current)
}

func (s *settler) node(n *memNode) {
	if n.isDir() {
		s.dir(n)
	} else {
		s.file(n)
	}
	s.done[n] = true
}

func (s *settler) file(n *memNode) {
	result := n.synced.clone()
	switch s.mode {
	case Keep, DataFirst:
		result = n.current.clone()
	case Random:
		s.sectors(n, &result)
	case LastFirst:
		s.lastSectors(n, &result)
	}
	n.current, n.synced = result, result.clone()
	n.markClean()
	clear(n.stale)
	n.minSize, n.maxSize = result.size, result.size
}

// sectors gives each unsynced sector one of its states since the last sync.
func (s *settler) sectors(n *memNode, result *memContent) {
	result.resize(s.owner, s.size(n))
	keep := s.rng.Float64() // so that nearly all and nearly none are likely too
	for _, i := range slices.Sorted(maps.Keys(n.dirty)) {
		if s.rng.Float64() < keep {
			states := append(n.dirty[i], n.current.sector(i))
			result.setSector(s.owner, i, states[s.rng.IntN(len(states))])
		}
	}
}

// lastSectors gives the latter half of the unsynced sectors their present state.
func (s *settler) lastSectors(n *memNode, result *memContent) {
	result.resize(s.owner, n.current.size)
	dirty := slices.Sorted(maps.Keys(n.dirty))
	for _, i := range dirty[len(dirty)/2:] {
		result.setSector(s.owner, i, n.current.sector(i))
	}
}

// size picks the synced size, the current one, or a torn one.
func (s *settler) size(n *memNode) int64 {
	switch s.rng.IntN(4) {
	case 0:
		return n.synced.size
	case 1:
		return n.current.size
	}
	torn := n.minSize + s.rng.Int64N(n.maxSize-n.minSize+1)
	if s.rng.IntN(2) == 0 {
		torn = max(n.minSize, torn/sectorSize*sectorSize)
	}
	return torn
}
