package btree

import (
	"math/bits"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// laneCount is how many descents are under way at once.
const laneCount = 16

// LookupBatch looks up many keys at once, in a third of the time: it descends
// for up to 16 of them together, so that their cache misses overlap. For each
// key it appends to dst what Lookup would, and to ends the length that dst then
// has. Each key is looked up at a time of its own.
func (t *Tree) LookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) ([]rowid.ID, []int, error) {
	checkPin(h)
	b := batch{tree: t}
	for len(keys) > 0 {
		n := min(len(keys), laneCount)
		b.descend(keys[:n])
		for i := range n {
			var err error
			if dst, err = b.finish(h, i, dst); err != nil {
				return dst, ends, err
			}
			ends = append(ends, len(dst))
		}
		keys = keys[n:]
	}
	return dst, ends, nil
}

// batch is a set of descents in lockstep.
type batch struct {
	tree  *Tree
	count int
	hunts [laneCount]hunt
	lanes [laneCount]lane
}

// lane is one descent. A disturbed one is given up and done again alone.
type lane struct {
	guard
	m    meta
	p    probe
	kind laneState
	i    int    // the place found
	word uint64 // of the child to enter
}

// hunt is the search of a lane in its node: what is left of the range of heads
// are the n from at on.
type hunt struct {
	heads unsafe.Pointer
	head  uint64
	at, n int
	room  int // from heads to values
}

type laneState int

const (
	descending laneState = iota
	atLeaf
	givenUp
)

// descend brings all lanes to the places of their keys in leaves.
func (b *batch) descend(keys [][]byte) {
	b.count = len(keys)
	root, err := b.tree.enterRoot()
	for i, key := range keys {
		l := &b.lanes[i]
		l.guard, l.kind, l.p = root, descending, newProbe(key, 0)
		if err != nil {
			l.kind = givenUp
		}
	}
	if err != nil {
		return
	}
	for longest := b.align(); longest > 0; longest = b.align() {
		steps := bits.Len(uint(longest - 1))
		b.search(steps - lineSteps)
		b.touchValues()
		b.search(min(steps, lineSteps))
		b.choose()
		b.touch()
		b.enter()
	}
}

// align prepares the search in the nodes just entered and returns the size of
// the largest one, 0 if no lane is descending any more.
func (b *batch) align() (longest int) {
	for i := range b.lanes[:b.count] {
		l, s := &b.lanes[i], &b.hunts[i]
		s.at, s.n, s.room = 0, 0, 0
		s.heads = l.at(headerSize)
		if l.kind != descending {
			continue
		}
		l.m = l.meta()
		if !l.m.sane() {
			l.kind = givenUp
			continue
		}
		l.p.align(l.node, l.m.prefix())
		s.heads, s.head, s.n, s.room = l.at(l.m.heads()), l.p.head, l.m.count(), l.m.room()
		longest = max(longest, s.n, 1)
	}
	return longest
}

// search halves all ranges in turn, without a branch that depends on keys. A
// range of one or none stays what it is.
func (b *batch) search(steps int) {
	hunts := b.hunts[:b.count]
	for range steps {
		for i := range hunts {
			s := &hunts[i]
			half := s.n >> 1
			next := s.at + half
			at := s.at
			if loadWord(unsafe.Add(s.heads, 8*next-8)) < s.head {
				at = next
			}
			s.at = at
			s.n -= half
		}
	}
}

// lineSteps is how many steps the search takes within one cache line.
const lineSteps = 3

// touchValues loads the value that is about where the search will end.
func (b *batch) touchValues() {
	for i := range b.hunts[:b.count] {
		s := &b.hunts[i]
		loadWord(unsafe.Add(s.heads, 8*(s.room+s.at)))
	}
}

// choose finds the child of each lane, or the place in its leaf.
func (b *batch) choose() {
	for i := range b.lanes[:b.count] {
		l := &b.lanes[i]
		if l.kind != descending {
			continue
		}
		b.tree.settle(l, &b.hunts[i])
		switch {
		case l.kind == givenUp:
		case l.m.level() == 0:
			l.kind = atLeaf
		default:
			l.word = l.child(l.m, l.i)
			if !l.valid() {
				l.kind = givenUp
			}
		}
	}
}

// settle ends the search of a lane.
func (t *Tree) settle(l *lane, s *hunt) {
	count := l.m.count()
	if l.p.side != 0 {
		l.i = 0
		if l.p.side > 0 {
			l.i = count
		}
		return
	}
	heads := l.m.heads()
	l.i = s.at
	if s.n > 0 && l.index(heads, l.i) < l.p.head {
		l.i++
	}
	if l.i == count || l.index(heads, l.i) != l.p.head {
		return
	}
	bias := upTo
	if l.m.level() == 0 {
		bias = below
	}
	var err error
	if l.i, err = t.searchRun(&l.guard, l.m, &l.p, l.i, bias); err != nil {
		l.kind = givenUp
	}
}

// touch loads a word of every child, so that the misses overlap.
func (b *batch) touch() {
	for i := range b.lanes[:b.count] {
		if l := &b.lanes[i]; l.kind == descending {
			if ref := b.tree.place(l.word); ref != 0 {
				loadWord(b.tree.arena.Pointer(ref))
			}
		}
	}
}

// place is where a child word says that its node is, 0 if it does not.
func (t *Tree) place(w uint64) arena.Ref {
	if t.store != nil {
		return hintOf(w)
	}
	return arena.Ref(w)
}

func (b *batch) enter() {
	for i := range b.lanes[:b.count] {
		l := &b.lanes[i]
		if l.kind != descending {
			continue
		}
		child, err := b.tree.enter(l.word)
		if err != nil || !l.valid() {
			l.kind = givenUp
			continue
		}
		if child.word != l.word {
			l.mend(l.m, l.i, child.word)
		}
		l.guard = child
	}
}

// finish appends the rows of lane i.
func (b *batch) finish(h *epoch.Handle, i int, dst []rowid.ID) ([]rowid.ID, error) {
	l := &b.lanes[i]
	if l.kind == atLeaf {
		if rows, ok := b.tree.collect(l, dst); ok {
			return rows, nil
		}
	}
	return b.tree.Lookup(h, l.p.key, dst)
}

// collect appends the rows with the lane's key, if all of them are in its leaf.
func (t *Tree) collect(l *lane, dst []rowid.ID) ([]rowid.ID, bool) {
	i := l.i
	for ; i < l.m.count(); i++ {
		same, err := t.sameKey(&l.guard, l.m, i, &l.p)
		if err != nil {
			return dst, false
		}
		if !same {
			break
		}
		dst = append(dst, rowid.ID(l.index(l.m.vals(), i)))
	}
	return dst, i < l.m.count() && l.valid()
}
