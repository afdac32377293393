package btree

import (
	"bytes"
	"cmp"
	"fmt"
)

// Validate walks the whole tree and returns the first thing that is wrong with
// it. No other call that changes the tree is running; the caller is pinned.
func (t *Tree) Validate() error {
	v := validator{tree: t, ids: make(map[NodeID]bool)}
	root, err := t.enterRoot()
	if err != nil {
		return err
	}
	if err := v.node(&root, root.meta().level(), bound{}, bound{}); err != nil {
		return err
	}
	if v.link != 0 {
		return fmt.Errorf("btree: last leaf is linked to %x", v.link)
	}
	return v.totals()
}

// bound is a place in the order; none is an open end.
type bound struct {
	key  []byte
	row  uint64
	some bool
}

func (b bound) compare(key []byte, row uint64) int {
	if c := bytes.Compare(b.key, key); c != 0 {
		return c
	}
	return cmp.Compare(b.row, row)
}

type validator struct {
	tree           *Tree
	ids            map[NodeID]bool // nodes met, in a tree with a store
	link           uint64          // what the leaf met last says of its neighbour
	leaves         int
	entries, nodes int64
}

func (v *validator) fail(g *guard, format string, args ...any) error {
	return fmt.Errorf("btree: node %x, level %d: %s", g.word, g.meta().level(), fmt.Sprintf(format, args...))
}

// node checks what is in [lo, hi).
func (v *validator) node(g *guard, level int, lo, hi bound) error {
	if err := v.frame(g, level); err != nil {
		return err
	}
	it := new(items)
	if err := v.tree.load(it, g); err != nil {
		return err
	}
	for _, check := range []func() error{
		func() error { return v.order(g, it, lo, hi) },
		func() error { return v.layout(g, it) },
		func() error { return v.searches(g, it) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if level == 0 {
		return v.leaf(g, it)
	}
	return v.children(g, it, lo, hi)
}

// frame checks the header.
func (v *validator) frame(g *guard, level int) error {
	m := g.meta()
	v.nodes++
	switch {
	case !g.isImage() && g.word0()&(latched|obsolete) != 0:
		return v.fail(g, "latched or obsolete: version %x", g.word0())
	case m.level() == overflowLevel || !g.soundLayout(m):
		return v.fail(g, "meta word %x describes no layout", uint64(m))
	case m.level() != level:
		return v.fail(g, "found at level %d", level)
	case v.tree.store != nil:
		return v.identity(g)
	}
	return nil
}

func (g *guard) word0() uint64 { return g.node.word(versionAt) }

// identity checks that the node table leads to the node and nothing else does.
func (v *validator) identity(g *guard) error {
	if g.id() != idOf(g.word) || v.ids[g.id()] {
		return v.fail(g, "has id %d or is met twice", g.id())
	}
	v.ids[g.id()] = true
	entry, err := v.tree.store.Entry(g.id())
	if err != nil {
		return err
	}
	if entry.Load() != g.entry() {
		return v.fail(g, "node table leads to %x", entry.Load())
	}
	return nil
}

// order checks that entries ascend strictly, within the separators around.
func (v *validator) order(g *guard, it *items, lo, hi bound) error {
	for i := range it.list {
		key, row := it.key(i), it.list[i].row
		if lo.some && lo.compare(key, row) > 0 {
			return v.fail(g, "entry %d is below the node's lower bound", i)
		}
		if hi.some && hi.compare(key, row) <= 0 {
			return v.fail(g, "entry %d is not below the node's upper bound", i)
		}
		if i > 0 && (bound{it.key(i - 1), it.list[i-1].row, true}).compare(key, row) >= 0 {
			return v.fail(g, "entry %d is not above its predecessor", i)
		}
	}
	return nil
}

// layout checks prefix, heads, slots and the accounting of the heap.
func (v *validator) layout(g *guard, it *items) error {
	m := g.meta()
	words := 0
	for i := range it.list {
		e, key := &it.list[i], it.key(i)
		rest := len(key) - m.prefix()
		if rest < 0 || g.index(m.heads(), i) != headAt(key, m.prefix()) {
			return v.fail(g, "head of entry %d", i)
		}
		if !m.isSlotted() {
			continue
		}
		s := g.slot(m, i)
		if s.length() != rest || s.isLong() != (len(key) > inlineKey) || s.hasRow() != e.hasRow(m.level()) {
			return v.fail(g, "slot %x of entry %d", uint32(s), i)
		}
		words += s.words()
	}
	if m.isSlotted() && words+m.dead() != nodeWords-m.heap() {
		return v.fail(g, "%d heap words are live and %d dead of %d", words, m.dead(), nodeWords-m.heap())
	}
	return v.prefix(g, it)
}

func (v *validator) prefix(g *guard, it *items) error {
	m := g.meta()
	if it.len() == 0 || m.prefix() == 0 {
		return nil
	}
	want := new(items)
	want.add(it.key(0)[:m.prefix()], &item{})
	if have := appendPrefix(nil, g.node, m.prefix()); !bytes.Equal(have, want.key(0)) {
		return v.fail(g, "prefix %x of key %x", have, it.key(0))
	}
	return nil
}

// searches checks that every entry is found where it is.
func (v *validator) searches(g *guard, it *items) error {
	for i := range it.list {
		p := newProbe(it.key(i), it.list[i].row)
		at, err := v.tree.search(g, g.meta(), &p, below)
		if err != nil {
			return err
		}
		behind, err := v.tree.search(g, g.meta(), &p, upTo)
		if err != nil {
			return err
		}
		if at != i || behind != i+1 {
			return v.fail(g, "search for entry %d comes to %d and %d", i, at, behind)
		}
	}
	return nil
}

// leaf checks the chain of leaves.
func (v *validator) leaf(g *guard, it *items) error {
	if v.leaves > 0 && !v.tree.sameNode(v.link, g.word) {
		return v.fail(g, "left neighbour is linked to %x", v.link)
	}
	v.leaves++
	v.link = g.link()
	v.entries += int64(it.len())
	return v.pages(it)
}

func (t *Tree) sameNode(a, b uint64) bool {
	if t.store != nil {
		return idOf(a) == idOf(b)
	}
	return a == b
}

// pages counts overflow pages; that they hold the keys is known from loading.
func (v *validator) pages(it *items) error {
	for i := range it.list {
		for w := it.list[i].long; w != 0; {
			page, err := v.tree.enter(w)
			if err != nil {
				return err
			}
			v.nodes++
			w = page.link()
		}
	}
	return nil
}

func (v *validator) children(g *guard, it *items, lo, hi bound) error {
	if err := v.pages(it); err != nil {
		return err
	}
	m := g.meta()
	for i := range m.count() + 1 {
		from, to := lo, hi
		if i > 0 {
			from = bound{it.key(i - 1), it.list[i-1].row, true}
		}
		if i < m.count() {
			to = bound{it.key(i), it.list[i].row, true}
		}
		child, err := v.tree.enter(g.child(m, i))
		if err != nil {
			return err
		}
		if err := v.node(&child, m.level()-1, from, to); err != nil {
			return err
		}
	}
	return nil
}

// totals compares with what the tree has counted.
func (v *validator) totals() error {
	entries, nodes := v.tree.count.sum()
	if entries != v.entries || nodes != v.nodes {
		return fmt.Errorf("btree: %d entries in %d nodes, counted %d in %d", v.entries, v.nodes, entries, nodes)
	}
	return nil
}
