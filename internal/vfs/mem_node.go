package vfs

type memSector = [sectorSize]byte

// maxStates bounds the unsynced states that are remembered of one sector.
const maxStates = 8

// memNode is a file or a directory. It is guarded by the mutex of its Mem.
type memNode struct {
	entries *memEntries // nil for a file

	current memContent // what readers see
	synced  memContent // what is on the medium

	// dirty holds the sectors changed since the last sync, each with the states
	// it went through since, oldest first, without the current one.
	dirty map[int64][]memSector
	// stale holds sectors that differ from the medium and that no sync will
	// write any more, because their write-back failed.
	stale map[int64]struct{}
	// The sizes since the last sync lie in [minSize, maxSize].
	minSize, maxSize int64
}

func newMemFile() *memNode {
	return &memNode{dirty: map[int64][]memSector{}, stale: map[int64]struct{}{}}
}

// newMemDir makes a directory without entries.
func newMemDir() *memNode {
	return &memNode{entries: &memEntries{current: map[string]*memNode{}, synced: map[string]*memNode{}}}
}

func (n *memNode) isDir() bool { return n.entries != nil }

// holds reports whether other is n or lies below it.
func (n *memNode) holds(other *memNode) bool {
	if n == other {
		return true
	}
	if !n.isDir() {
		return false
	}
	for _, child := range n.entries.current {
		if child.holds(other) {
			return true
		}
	}
	return false
}

func (n *memNode) writeAt(owner *memOwner, p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	n.touch(off, off+int64(len(p)))
	n.current.writeAt(owner, p, off)
	n.noteSize()
}

func (n *memNode) truncate(owner *memOwner, size int64) {
	if size < n.current.size {
		n.touch(size, n.current.size)
	}
	n.current.resize(owner, size)
	n.noteSize()
}

// touch marks the sectors of [from, to) as dirty before they are changed.
func (n *memNode) touch(from, to int64) {
	for i := from / sectorSize; i*sectorSize < to; i++ {
		states, again := n.dirty[i]
		if again {
			states = append(states[max(0, len(states)-maxStates+1):], n.current.sector(i))
		}
		n.dirty[i] = states
		delete(n.stale, i)
	}
}

func (n *memNode) noteSize() {
	n.minSize = min(n.minSize, n.current.size)
	n.maxSize = max(n.maxSize, n.current.size)
}

// sync moves what is dirty to the medium.
func (n *memNode) sync(owner *memOwner) {
	n.synced.resize(owner, n.current.size)
	for i := range n.dirty {
		n.synced.setSector(owner, i, n.current.sector(i))
	}
	n.markClean()
	n.minSize, n.maxSize = n.current.size, n.current.size
}

// failWriteback is what a failed fsync does: dirty sectors count as written
// although they are not.
func (n *memNode) failWriteback() {
	for i := range n.dirty {
		n.stale[i] = struct{}{}
	}
	n.markClean()
}

// markClean takes a new map: clearing one costs what it once held.
func (n *memNode) markClean() { n.dirty = map[int64][]memSector{} }

// dropCache makes the stale sectors read as they are on the medium.
func (n *memNode) dropCache(owner *memOwner) {
	for i := range n.stale {
		n.current.setSector(owner, i, n.synced.sector(i))
	}
	clear(n.stale)
}
