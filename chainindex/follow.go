package chainindex

import (
	"context"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// follower is a tree that gets every change of the index, under the same latch
// of the key. Its entries have the rows themselves, and it has no tombstones.
type follower struct {
	tree     *btree.Tree
	complete bool // it has all entries of the index
}

// Mirror gives an index that is not in use yet a follower that has all of its
// entries.
func (x *Index) Mirror(tree *btree.Tree) { x.follower.Store(&follower{tree, true}) }

// Mirrored reports whether a follower has all entries of the index. Then
// unique keys are checked against it, and it can answer in place of the index.
func (x *Index) Mirrored() bool {
	f := x.follower.Load()
	return f != nil && f.complete
}

// Follow makes all changes from now on go to tree as well; when it returns, no
// change that does not is under way. There is no follower yet. If the tree
// cannot take a change for lack of memory, it is dropped.
func (x *Index) Follow(ctx context.Context, tree *btree.Tree) error {
	f := &follower{tree: tree}
	x.follower.Store(f)
	if err := x.spec.Domain.Barrier(ctx); err != nil {
		x.follower.CompareAndSwap(f, nil)
		return err
	}
	return nil
}

// Complete says that the follower has all entries of the index. It returns
// false if the follower has been dropped.
func (x *Index) Complete() bool {
	f := x.follower.Load()
	return f != nil && x.follower.CompareAndSwap(f, &follower{f.tree, true})
}

// Unfollow drops a follower that is not complete. Operations that are pinned
// now may still use its tree.
func (x *Index) Unfollow() {
	if f := x.follower.Load(); f != nil && !f.complete {
		x.follower.CompareAndSwap(f, nil)
	}
}

// followInsert passes an insertion on. A follower that is not complete and
// fails is dropped: the index does without it.
func (x *Index) followInsert(h *epoch.Handle, f *follower, key []byte, row rowid.ID, unique index.Checker) error {
	if f.complete {
		return f.tree.Insert(h, key, row, unique)
	}
	return x.orDrop(f, f.tree.Insert(h, key, row, nil))
}

func (x *Index) followRemove(h *epoch.Handle, f *follower, key []byte, row rowid.ID) error {
	_, err := f.tree.Remove(h, key, row, always)
	if f.complete {
		return err
	}
	return x.orDrop(f, err)
}

// orDrop drops a follower that failed. One that has become complete meanwhile
// is needed, so its failure is that of the operation.
func (x *Index) orDrop(f *follower, err error) error {
	if err == nil {
		return nil
	}
	if x.follower.CompareAndSwap(f, nil) {
		x.spec.Logger.Warn("index is not mirrored", "index", x.spec.Name, "error", err)
		return nil
	}
	if x.Mirrored() {
		return err
	}
	return nil
}

// undoEnter takes an entry out of the head that a complete follower has
// refused. If the follower has it all the same, it was there before and stays.
func (x *Index) undoEnter(h *epoch.Handle, head *layer, f *follower, key []byte, row rowid.ID, refusal error) error {
	present := false
	_, err := f.tree.Remove(h, key, row, func() bool {
		present = true
		return false
	})
	if err == nil && !present {
		err = head.takeOut(h, key, livePlace(row.Ordinal()))
	}
	if err != nil {
		return err
	}
	return refusal
}
