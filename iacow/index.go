package iacow

import (
	"errors"
	"runtime/debug"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/rowid"
)

// Index is a B+tree with incremental checkpoints. Its methods, Close and those of
// captures excepted, are safe for concurrent use.
type Index struct {
	spec     index.Spec
	tree     *btree.Tree
	store    *store
	mapped   atomic.Bool // operations may meet nodes in files
	verifier *verifier   // nil unless opened from files

	// For checkpoints, one at a time.
	salt      func() uint64 // of files
	capturing bool
	lapsed    bool    // the last BeginCheckpoint gave up waiting
	retired   []int   // places of files that no entry refers to any more
	freed     []freed // ids that the last checkpoint does not have

	faultsExpected bool // every operation has seen mapped
}

var (
	_ index.Index        = (*Index)(nil)
	_ index.BatchLooker  = (*Index)(nil)
	_ index.Checkpointer = (*Index)(nil)
	_ index.Shrinker     = (*Index)(nil)
)

// Insert adds (key, row); see index.Index. Besides the errors named there, all
// methods return a *fault.File if they meet damage in a file.
func (x *Index) Insert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) (err error) {
	if x.mapped.Load() {
		defer mapfile.Catch(debug.SetPanicOnFault(true), x.store, &err)
	}
	return x.tree.Insert(h, key, row, unique)
}

// Remove takes (key, row) out if dead says so.
func (x *Index) Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (removed bool, err error) {
	if x.mapped.Load() {
		defer mapfile.Catch(debug.SetPanicOnFault(true), x.store, &err)
	}
	return x.tree.Remove(h, key, row, dead)
}

// Lookup appends the rows of all entries with exactly this key.
func (x *Index) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) (rows []rowid.ID, err error) {
	if x.mapped.Load() {
		defer mapfile.Catch(debug.SetPanicOnFault(true), x.store, &err)
	}
	return x.tree.Lookup(h, key, dst)
}

// LookupBatch looks up many keys at once.
func (x *Index) LookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) (_ []rowid.ID, _ []int, err error) {
	if x.mapped.Load() {
		defer mapfile.Catch(debug.SetPanicOnFault(true), x.store, &err)
	}
	return x.tree.LookupBatch(h, keys, dst, ends)
}

// Scan fills b with the next entries of r behind c.
func (x *Index) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (more bool, err error) {
	if x.mapped.Load() {
		defer mapfile.Catch(debug.SetPanicOnFault(true), x.store, &err)
	}
	return x.tree.Scan(h, r, c, b)
}

// Stats counts as memory all blocks, in use or not, and the node table.
func (x *Index) Stats() index.Stats {
	st := index.Stats{Entries: x.tree.Stats().Entries}
	st.Bytes = x.store.held.Load()*blockBytes + x.store.table.bytes()
	for i := range x.store.files {
		if f := x.store.files[i].Load(); f != nil {
			st.Mapped += int64(len(f.data))
			st.Bytes += f.checked.bytes()
		}
	}
	return st
}

// Close frees the memory and unmaps the files.
func (x *Index) Close() error {
	var err error
	if x.verifier != nil {
		err = x.verifier.stop()
	}
	return errors.Join(err, x.store.close())
}
