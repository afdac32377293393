package btree

import (
	"bytes"
	"encoding/binary"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Scan fills b with the next entries of r behind c. A fill that is disturbed
// starts over; the cursor moves when all of it is known to be true.
func (t *Tree) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	checkPin(h)
	for attempt := 0; ; attempt++ {
		b.Begin(c)
		s := scan{tree: t, rng: r, batch: b, latch: attempt > patience}
		end, err := s.fill(c)
		if err == nil {
			b.Finish(c)
			return end == batchFull, nil
		}
		if again, err := t.retry(h, err, attempt); !again {
			return false, err
		}
	}
}

// scan is one try to fill a batch.
type scan struct {
	tree  *Tree
	rng   index.Range
	batch *index.Batch
	latch bool // latch each leaf, after many disturbed tries
	top   bool // descending from above all entries, not from a probe
	whole bool // ascending, the leaf is not the first one: all of it lies ahead
	key   []byte
}

// progress says why the reading of a leaf ended.
type progress int

const (
	leafDone progress = iota
	batchFull
	rangeDone
)

func (s *scan) fill(c *index.Cursor) (progress, error) {
	if s.rng.Hi != nil && len(s.rng.Hi) == 0 {
		return rangeDone, nil
	}
	if s.rng.Reverse {
		return s.descend(c)
	}
	return s.ascend(c)
}

// ascend follows the links of the leaves. All of the next leaf is above what
// was read: it was the neighbour at the time when the reading ended.
func (s *scan) ascend(c *index.Cursor) (progress, error) {
	p, bias := newProbe(s.rng.Lo, 0), below
	if key, row := c.Entry(); c.Started() && bytes.Compare(key, p.key) >= 0 {
		p, bias = newProbe(key, uint64(row)), upTo
	}
	leaf, _, err := s.tree.seek(&p, upTo)
	for ok := true; err == nil; {
		var end progress
		if end, err = s.leaf(&leaf, &p, bias); err != nil || end != leafDone {
			return end, err
		}
		if leaf, ok, err = s.tree.next(&leaf); !ok {
			return rangeDone, err
		}
		s.whole = true
	}
	return rangeDone, err
}

// descend comes to the leaf on the left by a new search for what is below the
// separator between the two. By then they may have been merged, so not all of
// what the search finds lies ahead.
func (s *scan) descend(c *index.Cursor) (progress, error) {
	p := newProbe(s.rng.Hi, 0)
	s.top = s.rng.Hi == nil
	if key, row := c.Entry(); c.Started() && (s.top || bytes.Compare(key, p.key) < 0) {
		p, s.top = newProbe(key, uint64(row)), false
	}
	var fence []byte
	for {
		leaf, left, err := s.seekBelow(&p)
		if err != nil {
			return rangeDone, err
		}
		end, err := s.leaf(&leaf, &p, below)
		if err != nil || end != leafDone {
			return end, err
		}
		if left.i == 0 {
			return rangeDone, nil
		}
		var row uint64
		if fence, row, err = s.tree.separator(fence[:0], &left); err != nil {
			return rangeDone, err
		}
		p, s.top = newProbe(fence, row), false
	}
}

// leaf delivers what one leaf has, and makes sure that it was true.
func (s *scan) leaf(g *guard, p *probe, bias int) (end progress, err error) {
	if err = g.hold(s.latch); err != nil {
		return end, err
	}
	m := g.meta()
	switch {
	case !m.sane():
		err = s.tree.damaged(g)
	case s.rng.Reverse:
		end, err = s.down(g, m, p)
	default:
		end, err = s.up(g, m, p, bias)
	}
	return end, g.letGo(err)
}

func (s *scan) up(g *guard, m meta, p *probe, bias int) (progress, error) {
	from, to := 0, m.count()
	var err error
	if !s.whole {
		if from, err = s.tree.search(g, m, p, bias); err != nil {
			return leafDone, err
		}
	}
	if s.rng.Hi != nil {
		hi := newProbe(s.rng.Hi, 0)
		if to, err = s.tree.search(g, m, &hi, below); err != nil {
			return leafDone, err
		}
	}
	stop := min(to, from+s.batch.Room())
	if !m.isSlotted() && from < stop {
		s.deliverHeads(g.node, m, from, stop-from, 1)
		from = stop
	}
	for i := from; i < stop && err == nil; i++ {
		err = s.deliver(g, m, i)
	}
	return s.progress(stop < to, to < m.count()), err
}

func (s *scan) down(g *guard, m meta, p *probe) (progress, error) {
	to := 0
	from, err := s.below(g, m, p)
	if err != nil {
		return leafDone, err
	}
	if len(s.rng.Lo) > 0 {
		lo := newProbe(s.rng.Lo, 0)
		if to, err = s.tree.search(g, m, &lo, below); err != nil {
			return leafDone, err
		}
	}
	stop := max(to, from-s.batch.Room())
	if !m.isSlotted() && from > stop {
		s.deliverHeads(g.node, m, from-1, from-stop, -1)
		from = stop
	}
	for i := from - 1; i >= stop && err == nil; i-- {
		err = s.deliver(g, m, i)
	}
	return s.progress(stop > to, to > 0), err
}

func (s *scan) progress(left, beyond bool) progress {
	switch {
	case left:
		return batchFull
	case beyond:
		return rangeDone
	case s.batch.Room() <= 0:
		return batchFull
	default:
		return leafDone
	}
}

func (s *scan) deliver(g *guard, m meta, i int) (err error) {
	row := rowid.ID(g.index(m.vals(), i))
	if s.key, err = s.tree.appendKey(s.key[:0], g, m, i); err == nil {
		s.batch.Append(s.key, row)
	}
	return err
}

// deliverHeads is deliver for the n entries from, from+step, … of a node without
// slots. It stores whole words, which go over into the next key before that is
// written; building a key apart and copying it would wait for the stores.
func (s *scan) deliverHeads(g node, m meta, from, n, step int) {
	s.key = appendPrefix(s.key[:0], g, m.prefix())
	prefix := len(s.key)
	size := prefix + min(m.length(), 8)
	keys, rows := s.batch.Extend(n, size)
	first, heads, vals := headAt(s.key, 0), m.heads(), m.vals()
	for i := range rows {
		key, head := keys[i*size:], g.index(heads, from)
		if len(key) < prefix+8 || prefix > 8 {
			copy(key, s.key)
			copyHead(key[prefix:size], head)
		} else {
			binary.BigEndian.PutUint64(key, first)
			binary.BigEndian.PutUint64(key[prefix:], head)
		}
		rows[i] = rowid.ID(g.index(vals, from))
		from += step
	}
}

func copyHead(dst []byte, head uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], head)
	copy(dst, b[:])
}

// fence is a place in an inner node: i is the child that a descent took, so
// separator i−1 is the lower end of what is below it; 0 means that there is none.
type fence struct {
	guard
	m meta
	i int
}

// seekBelow descends to the leaf with the entry before the probe's place and
// returns the deepest separator on its left.
func (s *scan) seekBelow(p *probe) (leaf guard, left fence, err error) {
	t := s.tree
	g, err := t.enterRoot()
	for err == nil {
		m := g.meta()
		if !m.sane() {
			return g, left, t.damaged(&g)
		}
		if m.level() == 0 {
			return g, left, nil
		}
		var i int
		if i, err = s.below(&g, m, p); err != nil {
			break
		}
		if i > 0 {
			left = fence{g, m, i}
		}
		g, err = t.step(&g, m, i)
	}
	return g, left, err
}

// below returns the number of entries below the place to descend from.
func (s *scan) below(g *guard, m meta, p *probe) (int, error) {
	if s.top {
		return m.count(), nil
	}
	return s.tree.search(g, m, p, below)
}

// separator copies the separator out that f stands on.
func (t *Tree) separator(dst []byte, f *fence) (key []byte, row uint64, err error) {
	if key, err = t.appendKey(dst, &f.guard, f.m, f.i-1); err != nil {
		return key, 0, err
	}
	if f.m.isSlotted() {
		row = f.entryRow(f.m, f.i-1, f.slot(f.m, f.i-1))
	}
	if !f.valid() {
		return key, 0, errRestart
	}
	return key, row, nil
}
