package chainindex

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Insert writes into the head. With a checker it first looks for the key in
// the files, where a page may have to be read, then latches the key and looks
// into what is in memory; if the files are others by then, it starts over.
func (x *Index) Insert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	checkRow(&x.spec, row)
	if unique == nil || x.Mirrored() {
		latch := x.latches.of(key)
		latch.Lock()
		err := x.enter(h, x.chain.Load().head(), key, row, unique)
		latch.Unlock()
		return err
	}
	w := x.works.get(key)
	defer x.works.put(w)
	for {
		c := x.chain.Load()
		var err error
		if w.places, err = c.collect(h, key, w.places[:0], c.memory, len(c.layers)); err != nil {
			return err
		}
		if done, err := x.tryInsert(h, w, c, row, unique); done {
			return err
		}
	}
}

// tryInsert is the part of Insert that is done with the key latched. It does
// nothing if the files are not those of c any more.
func (x *Index) tryInsert(h *epoch.Handle, w *work, c *chain, row rowid.ID, unique index.Checker) (done bool, err error) {
	latch := x.latches.of(w.key())
	latch.Lock()
	defer latch.Unlock()
	now := x.chain.Load()
	if !now.sameFiles(c) {
		return false, nil
	}
	if w.places, err = now.collect(h, w.key(), w.places, 1, now.memory); err != nil {
		return true, err
	}
	if len(w.places) == 0 && x.follower.Load() == nil {
		return true, x.insertNew(h, w, now.head(), row, unique)
	}
	if w.places, err = now.collect(h, w.key(), w.places, 0, 1); err != nil {
		return true, err
	}
	for _, other := range settle(w.places, x.spec.Table) {
		if other == row {
			continue
		}
		if err := unique.Check(other); err != nil {
			return true, err
		}
	}
	return true, x.enter(h, now.head(), w.key(), row, nil)
}

// insertNew adds an entry whose key is in no other layer than the head: the
// head's tree finds the others of the key on the way.
func (x *Index) insertNew(h *epoch.Handle, w *work, head *layer, row rowid.ID, unique index.Checker) error {
	w.unique = headChecker{unique, x.spec.Table}
	return head.tree.Insert(h, w.key(), livePlace(row.Ordinal()), &w.unique)
}

// headChecker asks a checker about the entries that the head alone has under
// the key: there are no tombstones among them.
type headChecker struct {
	index.Checker
	table rowid.Table
}

// Check is called by a tree of the chain.
func (c *headChecker) Check(place rowid.ID) error {
	return c.Checker.Check(rowid.Make(c.table, placeOrdinal(place)))
}

// enter adds an entry to the head and to the follower, with the key latched.
// If the follower has the whole index, the checker is asked by it.
func (x *Index) enter(h *epoch.Handle, head *layer, key []byte, row rowid.ID, unique index.Checker) error {
	if err := head.tree.Insert(h, key, livePlace(row.Ordinal()), nil); err != nil {
		return err
	}
	if f := x.follower.Load(); f != nil {
		if err := x.followInsert(h, f, key, row, unique); err != nil {
			return x.undoEnter(h, head, f, key, row, err)
		}
	}
	if head.tombs.Load() == 0 {
		return nil
	}
	return head.takeOut(h, key, deadPlace(row.Ordinal()))
}

// takeOut removes a place from a layer in memory, if it is there.
func (l *layer) takeOut(h *epoch.Handle, key []byte, place rowid.ID) error {
	removed, err := l.tree.Remove(h, key, place, always)
	if removed && isTombstone(place) {
		l.tombs.Add(-1)
	}
	return err
}

func always() bool { return true }
