package chainindex

import (
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/rowid"
)

// layer is one tree of a chain: the head, a frozen one, or one in a mapped
// file. The last two are never changed.
type layer struct {
	tree  *btree.Tree
	file  *mappedFile  // nil: in memory
	count atomic.Int64 // entries when it was made or frozen
	tombs atomic.Int64 // tombstones among the entries
	refs  atomic.Int32 // owners: the chain, and others that go on with a layer that left it
}

func newLayer(tree *btree.Tree, tombs int64) *layer {
	l := &layer{tree: tree}
	l.count.Store(l.entries())
	l.tombs.Store(tombs)
	l.refs.Store(1)
	return l
}

// treeConfig is that of a tree in memory.
func TreeConfig(spec *index.Spec) btree.Config {
	table, name, _ := strings.Cut(spec.Name, ".")
	return btree.Config{Arena: spec.Arena, Table: table, Index: name}
}

// entries counts what the layer holds, tombstones included.
func (l *layer) entries() int64 { return l.tree.Stats().Entries }

// size is entries for a layer that is frozen, at less cost.
func (l *layer) size() int64 { return l.count.Load() }

func (l *layer) lookup(h *epoch.Handle, key []byte, dst []rowid.ID) (_ []rowid.ID, err error) {
	if l.file == nil {
		return l.tree.Lookup(h, key, dst)
	}
	defer mapfile.Catch(debug.SetPanicOnFault(true), l.file, &err)
	return l.tree.Lookup(h, key, dst)
}

func (l *layer) lookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) (_ []rowid.ID, _ []int, err error) {
	if l.file == nil {
		return l.tree.LookupBatch(h, keys, dst, ends)
	}
	defer mapfile.Catch(debug.SetPanicOnFault(true), l.file, &err)
	return l.tree.LookupBatch(h, keys, dst, ends)
}

func (l *layer) scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (more bool, err error) {
	if l.file == nil {
		return l.tree.Scan(h, r, c, b)
	}
	defer mapfile.Catch(debug.SetPanicOnFault(true), l.file, &err)
	return l.tree.Scan(h, r, c, b)
}

// finding is what a layer says about one entry.
type finding uint8

const (
	isLive finding = 1 << iota // it has the entry
	isDead                     // it has the entry's tombstone; without effect beside isLive
)

// probe looks for one entry among the many that a key may have.
func (l *layer) probe(h *epoch.Handle, w *work, ordinal uint64) (f finding, err error) {
	w.cursor.Set(w.key(), deadPlace(ordinal-1))
	w.batch.Max = 2 // the entry and its tombstone
	if _, err = l.scan(h, w.onlyKey(), &w.cursor, &w.batch); err != nil {
		return 0, err
	}
	for _, p := range w.batch.Rows() {
		switch p {
		case livePlace(ordinal):
			f |= isLive
		case deadPlace(ordinal):
			f |= isDead
		}
	}
	return f, nil
}

func (l *layer) retain() { l.refs.Add(1) }

// release ends one ownership. With the last one tree and file go, once no
// operation that is pinned now can use them.
func (x *Index) release(l *layer) {
	if l.refs.Add(-1) != 0 {
		return
	}
	x.spec.Domain.Defer(func() {
		if err := l.close(&x.spec); err != nil {
			x.spec.Logger.Warn("layer of an index was not released", "index", x.spec.Name, "error", err)
		}
	})
}

func (l *layer) close(spec *index.Spec) error {
	if l.file == nil {
		return l.tree.Close()
	}
	return l.file.close(spec.Arena)
}
