//go:build unix

package peers

import (
	"sync"
	"testing"

	google "github.com/google/btree"
	tidwall "github.com/tidwall/btree"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// contender is one goroutine's access to a tree.
type contender interface {
	insert(key []byte, row rowid.ID) error
	get(key []byte) (rowid.ID, error)
	scan(from []byte, n int) (int, error)
	another() contender // for one more goroutine
}

// batcher is a contender that looks several keys up together.
type batcher interface {
	getBatch(keys [][]byte) ([]rowid.ID, error)
}

// ours is the B+tree of package btree.
type ours struct {
	tree   *btree.Tree
	domain *epoch.Domain
	h      *epoch.Handle
	rows   []rowid.ID
	ends   []int
	cursor index.Cursor
	batch  index.Batch
}

func newOurs(b *testing.B, byID bool) contender {
	a := arena.New(arena.Config{})
	c := btree.Config{Arena: a}
	if byID {
		c.Store = btree.NewNodeTable(a)
	}
	tree, err := btree.New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = a.Close() })
	d := epoch.NewDomain(a)
	return &ours{tree: tree, domain: d, h: d.Register()}
}

func (o *ours) another() contender {
	return &ours{tree: o.tree, domain: o.domain, h: o.domain.Register()}
}

func (o *ours) insert(key []byte, row rowid.ID) error {
	o.h.Pin()
	defer o.h.Unpin()
	return o.tree.Insert(o.h, key, row, nil)
}

func (o *ours) get(key []byte) (row rowid.ID, err error) {
	o.h.Pin()
	o.rows, err = o.tree.Lookup(o.h, key, o.rows[:0])
	o.h.Unpin()
	if len(o.rows) == 1 {
		row = o.rows[0]
	}
	return row, err
}

func (o *ours) getBatch(keys [][]byte) (rows []rowid.ID, err error) {
	o.h.Pin()
	o.rows, o.ends, err = o.tree.LookupBatch(o.h, keys, o.rows[:0], o.ends[:0])
	o.h.Unpin()
	return o.rows, err
}

func (o *ours) scan(from []byte, n int) (seen int, err error) {
	o.cursor.Reset()
	o.batch.First = n
	for more := true; more && seen < n; seen += o.batch.Len() {
		o.h.Pin()
		more, err = o.tree.Scan(o.h, index.Range{Lo: from}, &o.cursor, &o.batch)
		o.h.Unpin()
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// item is what the peers hold.
type item struct {
	key string
	row rowid.ID
}

func less(a, b item) bool { return a.key < b.key }

type googleTree struct {
	mu   *sync.RWMutex
	tree *google.BTreeG[item]
}

func newGoogle(*testing.B) contender {
	return googleTree{new(sync.RWMutex), google.NewG(64, less)}
}

func (g googleTree) another() contender { return g }

func (g googleTree) insert(key []byte, row rowid.ID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tree.ReplaceOrInsert(item{string(key), row})
	return nil
}

func (g googleTree) get(key []byte) (rowid.ID, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	e, _ := g.tree.Get(item{key: string(key)})
	return e.row, nil
}

func (g googleTree) scan(from []byte, n int) (seen int, err error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	g.tree.AscendGreaterOrEqual(item{key: string(from)}, func(item) bool {
		seen++
		return seen < n
	})
	return seen, nil
}

type tidwallTree struct {
	mu   *sync.RWMutex
	tree *tidwall.BTreeG[item]
}

func newTidwall(*testing.B) contender {
	return tidwallTree{new(sync.RWMutex), tidwall.NewBTreeGOptions(less, tidwall.Options{NoLocks: true})}
}

func (w tidwallTree) another() contender { return w }

func (w tidwallTree) insert(key []byte, row rowid.ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tree.Set(item{string(key), row})
	return nil
}

func (w tidwallTree) get(key []byte) (rowid.ID, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	e, _ := w.tree.Get(item{key: string(key)})
	return e.row, nil
}

func (w tidwallTree) scan(from []byte, n int) (seen int, err error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	w.tree.Ascend(item{key: string(from)}, func(item) bool {
		seen++
		return seen < n
	})
	return seen, nil
}
