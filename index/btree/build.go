package btree

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// DefaultFill is a fill factor that leaves some room for insertions.
const DefaultFill = 0.9

// Builder makes a tree bottom-up from entries in ascending order. It is used
// by one goroutine, which needs no pin.
type Builder struct {
	tree    *Tree
	root    guard
	limit   int // bytes of a node that are filled
	rungs   []*rung
	left    guard // the leaf written last
	entries int64
}

// rung is the node under construction at one level.
type rung struct {
	level   int
	items   items
	shape   shape
	started bool
	link    uint64 // inner: leftmost child
	next    items  // inner: the separator behind the last child
}

// NewBuilder begins an empty tree whose nodes are to be filled to the given
// part, from 0.5 to 1.
func NewBuilder(c Config, fill float64) (*Builder, error) {
	t := newTree(c)
	root, err := t.newNode(c.Shard)
	if err != nil {
		return nil, err
	}
	t.root.Store(root.word)
	b := &Builder{tree: t, root: root, limit: int(NodeSize * min(max(fill, 0.5), 1))}
	b.rung(0)
	return b, nil
}

func (b *Builder) rung(level int) *rung {
	if level == len(b.rungs) {
		b.rungs = append(b.rungs, &rung{level: level})
	}
	return b.rungs[level]
}

// Add appends an entry. Repeating the last one changes nothing; one below it is
// index.ErrOrder. After another error only Abandon is of use.
func (b *Builder) Add(key []byte, row rowid.ID) error {
	if err := b.tree.checkKey(key); err != nil {
		return err
	}
	leaf := b.rungs[0]
	shared, c := leaf.after(key, uint64(row))
	if c >= 0 {
		if c > 0 {
			return index.ErrOrder
		}
		return nil
	}
	e := item{row: uint64(row), val: uint64(row)}
	if err := b.keepLong(key, &e); err != nil {
		return err
	}
	leaf.add(key, &e, shared)
	b.entries++
	if leaf.shape.size > b.limit && leaf.items.len() > 1 {
		return b.flushLeaf(leaf)
	}
	return nil
}

// after compares the last entry with the next one and returns how many bytes
// their keys share.
func (r *rung) after(key []byte, row uint64) (shared, order int) {
	n := r.items.len()
	if n == 0 {
		return 0, -1
	}
	last := r.items.key(n - 1)
	shared = commonPrefix(last, key)
	switch {
	case shared < len(last) && shared < len(key):
		return shared, cmp.Compare(last[shared], key[shared])
	case len(last) != len(key):
		return shared, cmp.Compare(len(last), len(key))
	default:
		return shared, cmp.Compare(r.items.list[n-1].row, row)
	}
}

// add appends an entry whose key shares so many bytes with the last one's, and
// keeps the shape up to date.
func (r *rung) add(key []byte, e *item, shared int) {
	n := r.items.len()
	r.items.add(key, e)
	s := &r.shape
	rest := len(key) - s.prefix
	if n < 2 || shared < s.prefix || s.length != slotted && (rest != s.length || e.hasRow(r.level) || e.long != 0) {
		*s = r.items.measure(r.level, 0, n+1)
		return
	}
	s.size += 16
	if s.length == slotted {
		words := e.words(r.level, rest)
		s.words += words
		s.size += 8*(1-n&1) + 8*words // slots come in pairs
	}
}

// meta is what is known of the layout that the node will have.
func (r *rung) meta() meta {
	return makeMeta(r.level, r.items.len(), 0, r.shape.prefix, 0, r.shape.length)
}

func (r *rung) reset() {
	r.items.reset()
	r.shape = shape{}
}

// flushLeaf makes a node of all entries but the last.
func (b *Builder) flushLeaf(r *rung) error {
	n, up := r.items.len()-1, b.rung(1)
	key, sep := separate(&r.items, n, up.meta())
	g, err := b.newNode(r, n)
	if err != nil {
		return err
	}
	if err := b.keepLong(key, &sep); err != nil {
		b.tree.discard(0, &g)
		return err
	}
	b.chain(g)
	last, lastKey := r.items.list[n], bytes.Clone(r.items.key(n))
	pushed := b.push(up, g.word, bytes.Clone(key), sep)
	r.reset()
	r.add(lastKey, &last, 0)
	return pushed
}

// newNode makes a node of the first n entries of the rung.
func (b *Builder) newNode(r *rung, n int) (guard, error) {
	g, err := b.tree.newNode(b.tree.shard)
	if err == nil {
		g.rewrite(&r.items, r.level, 0, n, r.link)
	}
	return g, err
}

// chain links the leaf written last to the next one, which stays latched.
func (b *Builder) chain(g guard) {
	if b.left.p != nil {
		b.left.setLink(g.word)
		b.left.unlatch()
	}
	b.left = g
}

// push adds a child at its level and the separator that is to follow it. What
// it is given is the rung's even if there is an error.
func (b *Builder) push(r *rung, child uint64, key []byte, sep item) error {
	if r.started {
		e := r.next.list[0]
		e.val = child
		shared, _ := r.after(r.next.key(0), e.row)
		r.add(r.next.key(0), &e, shared)
	} else {
		r.link, r.started = child, true
	}
	r.next.reset()
	if key != nil {
		r.next.add(key, &sep)
	}
	if r.shape.size <= b.limit || r.items.len() < 2 {
		return nil
	}
	return b.flushInner(r)
}

// flushInner makes a node of all entries but the last, which goes up.
func (b *Builder) flushInner(r *rung) error {
	n := r.items.len() - 1
	g, err := b.newNode(r, n)
	if err != nil {
		return err
	}
	g.unlatch()
	last, key := r.items.list[n], bytes.Clone(r.items.key(n))
	r.reset()
	r.link = last.val
	return b.push(b.rung(r.level+1), g.word, key, last)
}

// Finish returns the tree.
func (b *Builder) Finish() (*Tree, error) {
	for level := 0; level < len(b.rungs)-1; level++ {
		r := b.rungs[level]
		g, err := b.newNode(r, r.items.len())
		if err != nil {
			return nil, err
		}
		if level == 0 {
			b.chain(g)
		}
		r.reset()
		if err := b.push(b.rungs[level+1], g.word, nil, item{}); err != nil {
			return nil, err
		}
		if level > 0 {
			g.unlatch()
		}
	}
	if b.left.p != nil {
		b.left.unlatch()
	}
	top := b.rungs[len(b.rungs)-1]
	b.root.rewrite(&top.items, top.level, 0, top.items.len(), top.link)
	b.root.unlatch()
	b.tree.count.add(0, b.entries, 0)
	t := b.tree
	b.tree = nil
	return t, nil
}

// Abandon frees what was built. After Finish it does nothing.
func (b *Builder) Abandon() error {
	if b.tree == nil {
		return nil
	}
	b.chain(guard{})
	var errs []error
	for _, r := range b.rungs {
		errs = append(errs, b.freeRung(r))
	}
	b.root.rewrite(new(items), 0, 0, 0, 0)
	b.root.unlatch()
	errs = append(errs, b.tree.Close())
	b.tree = nil
	return errors.Join(errs...)
}

// freeRung frees what is below a node that was not made, and its long keys.
func (b *Builder) freeRung(r *rung) error {
	var errs []error
	free := func(word uint64) {
		if word != 0 {
			errs = append(errs, b.tree.free(word))
		}
	}
	free(r.link)
	for _, it := range []*items{&r.items, &r.next} {
		for _, e := range it.list {
			free(e.long)
			if r.level > 0 && it == &r.items {
				free(e.val)
			}
		}
	}
	return errors.Join(errs...)
}

// keepLong stores a long key out of line.
func (b *Builder) keepLong(key []byte, e *item) error {
	var pages []guard
	err := b.tree.keepLong(b.tree.shard, &pages, key, e)
	for i := range pages {
		if err != nil {
			b.tree.discard(0, &pages[i])
		} else {
			pages[i].unlatch()
		}
	}
	return err
}
