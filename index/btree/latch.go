package btree

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/arena"
)

// The version word of a node: a counter with two flags below it. A change is
// made under latched and ends by the next count; obsolete is for ever.
const (
	obsolete    = 1
	latched     = 2
	versionStep = 4
)

// errRestart says that an optimistic read or a try for a latch met a change.
// The operation starts over; it never leaves the package.
var errRestart = errors.New("btree: restart")

// guard is a node together with the state in which it was entered. What was
// read from the node counts only if valid says afterwards that the state is
// still the same.
type guard struct {
	node
	state unsafe.Pointer // the node's version word, or the table's word of an image
	seen  uint64         // its value on entering
	word  uint64         // child word that leads here, with a true hint
}

// valid reports whether the node is as it was when it was entered.
func (g *guard) valid() bool { return loadWord(g.state) == g.seen }

// isImage reports whether the node is an immutable one of a mapped file.
func (g *guard) isImage() bool { return g.state != g.p }

// entry is what the node table says of the node: its place in the arena, or
// how the store finds the image.
func (g *guard) entry() uint64 {
	if g.isImage() {
		return g.seen
	}
	return uint64(hintOf(g.word))
}

// tryLatch latches the node in the state in which it was entered. It is not
// for images. A latched guard stays valid for its holder.
func (g *guard) tryLatch() bool {
	if !atomic.CompareAndSwapUint64((*uint64)(g.state), g.seen, g.seen|latched) {
		return false
	}
	g.seen |= latched
	return true
}

// latch latches the node whatever its version is, unless it is obsolete. It
// waits, so the caller holds no latch.
func (g *guard) latch() bool {
	for i := 0; ; i++ {
		if g.seen = g.await(); g.seen&obsolete != 0 {
			return false
		}
		if g.tryLatch() {
			return true
		}
		pause(i)
	}
}

func (g *guard) isLatched() bool { return g.seen&latched != 0 && !g.isImage() }

// unlatch ends a change.
func (g *guard) unlatch() { g.release(g.seen&^latched + versionStep) }

// unlatchSame gives back the latch of a node that was not changed: readers in
// between need not restart.
func (g *guard) unlatchSame() { g.release(g.seen &^ latched) }

// unlatchObsolete ends the life of the node.
func (g *guard) unlatchObsolete() { g.release(g.seen&^latched + versionStep | obsolete) }

func (g *guard) release(version uint64) {
	atomic.StoreUint64((*uint64)(g.state), version)
	g.seen = version
}

// hold begins the reading of a node that may have to be latched for it.
func (g *guard) hold(latch bool) error {
	if latch && !g.isImage() && !g.tryLatch() {
		return errRestart
	}
	return nil
}

// letGo ends it: what was read counts if the result is nil.
func (g *guard) letGo(err error) error {
	if err == nil && !g.valid() {
		err = errRestart
	}
	if g.isLatched() {
		g.unlatchSame()
	}
	return err
}

// spins is how often a waiter looks again before it yields. Yielding at once
// starves writers beside busy readers; not at all, it would burn the time slice
// that a preempted holder of the latch needs.
const spins = 64

// pause is called before the attempt-th repetition.
func pause(attempt int) {
	if attempt >= spins {
		runtime.Gosched()
	}
}

// await returns the version of the node when no one holds its latch.
func (n node) await() uint64 {
	for i := 0; ; i++ {
		if v := n.word(versionAt); v&latched == 0 {
			return v
		}
		pause(i)
	}
}

// enter follows a child word that was read from a valid node.
func (t *Tree) enter(w uint64) (guard, error) {
	if t.store != nil {
		return t.enterByID(w)
	}
	n := node{t.arena.Pointer(arena.Ref(w))}
	v := n.word(versionAt)
	if v&(latched|obsolete) != 0 {
		return enterBusy(n, w)
	}
	return guard{n, n.p, v, w}, nil
}

func enterBusy(n node, w uint64) (guard, error) {
	v := n.await()
	if v&obsolete != 0 {
		return guard{}, errRestart
	}
	return guard{n, n.p, v, w}, nil
}

// name is the word with which a node in memory says which one it is.
func (t *Tree) name(id NodeID) uint64 { return t.owner | uint64(id) }

// enterByID takes the address hint if the header there confirms it, and asks
// the node table otherwise.
func (t *Tree) enterByID(w uint64) (guard, error) {
	if ref := hintOf(w); ref != 0 {
		n := node{t.arena.Pointer(ref)}
		v := n.word(versionAt)
		if v&(latched|obsolete) == 0 && n.name() == t.name(idOf(w)) {
			return guard{n, n.p, v, w}, nil
		}
	}
	return t.resolve(idOf(w))
}

// resolve enters a node through the node table.
func (t *Tree) resolve(id NodeID) (guard, error) {
	slot, err := t.store.Entry(id)
	if err != nil {
		return guard{}, err
	}
	for i := 0; ; i++ {
		entry := slot.Load()
		if entry&ImageBit != 0 {
			return t.enterImage(id, slot, entry)
		}
		if entry == 0 {
			return guard{}, errRestart
		}
		ref := arena.Ref(entry)
		n := node{t.arena.Pointer(ref)}
		v := n.word(versionAt)
		switch {
		case v&latched != 0 || v&obsolete != 0 && slot.Load() != entry:
			pause(i)
		case v&obsolete != 0 || n.name() != t.name(id):
			return guard{}, errRestart
		default:
			return guard{n, n.p, v, childWord(id, ref)}, nil
		}
	}
}

func (t *Tree) enterImage(id NodeID, slot *atomic.Uint64, entry uint64) (guard, error) {
	p, err := t.store.Image(id, entry)
	if err != nil {
		return guard{}, err
	}
	return guard{node{p}, unsafe.Pointer(slot), entry, childWord(id, 0)}, nil
}
