package rebuild

import (
	"unsafe"

	"github.com/google/btree"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// degree gives nodes of up to 255 entries, which just fill the allocator's
// 8 KiB class. With a million entries, degree 64 takes as long to insert and a
// quarter longer to scan, degree 32 half as long again.
const degree = 128

// tree is the index: every entry of one table's index in one B-tree.
type tree struct {
	latch   latch
	table   rowid.Table
	entries *btree.BTreeG[entry]
	rest    int64 // bytes outside the entries
}

func newTree(spec index.Spec) *tree {
	return &tree{table: spec.Table, entries: btree.NewG(degree, before)}
}

func (x *tree) Insert(_ *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	x.checkRow(row)
	e := view(key, row.Ordinal()).own()
	x.latch.Lock()
	defer x.latch.Unlock()
	if unique != nil {
		if err := x.check(e, unique); err != nil {
			return err
		}
	}
	x.add(e)
	return nil
}

// check puts every other row entered under e's key to the checker.
func (x *tree) check(e entry, unique index.Checker) (err error) {
	x.equal(e, func(other entry) bool {
		if other.tail == e.tail {
			return true
		}
		err = unique.Check(x.row(other))
		return err == nil
	})
	return err
}

func (x *tree) add(e entry) {
	if _, present := x.entries.ReplaceOrInsert(e); !present {
		x.rest += restSize(e)
	}
}

func (x *tree) Remove(_ *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	e := view(key, row.Ordinal())
	x.latch.Lock()
	defer x.latch.Unlock()
	if !x.entries.Has(e) || !dead() {
		return false, nil
	}
	x.entries.Delete(e)
	x.rest -= restSize(e)
	return true, nil
}

func (x *tree) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	e := view(key, 0)
	x.latch.RLock(h.Shard())
	x.equal(e, func(e entry) bool {
		dst = append(dst, x.row(e))
		return true
	})
	x.latch.RUnlock(h.Shard())
	return dst, nil
}

// equal visits the entries that have the key of e until fn returns false.
func (x *tree) equal(e entry, fn func(entry) bool) {
	e.tail &^= ordinalMask
	x.entries.AscendGreaterOrEqual(e, func(other entry) bool {
		return sameKey(e, other) && fn(other)
	})
}

// Stats counts a node as three quarters full, which random inserts come to;
// loaded in order they are half full.
func (x *tree) Stats() index.Stats {
	x.latch.RLock(0)
	defer x.latch.RUnlock(0)
	n := int64(x.entries.Len())
	return index.Stats{
		Entries: n,
		Bytes:   n*int64(unsafe.Sizeof(entry{}))*4/3 + x.rest,
	}
}

// Close lets the collector have the tree.
func (x *tree) Close() error {
	x.latch.Lock()
	defer x.latch.Unlock()
	x.entries.Clear(false)
	x.rest = 0
	return nil
}

func restSize(e entry) int64 { return int64(len(e.restBytes())) }

func (x *tree) row(e entry) rowid.ID { return rowid.Make(x.table, e.ordinal()) }

func (x *tree) checkRow(row rowid.ID) {
	if invariants.Enabled && (row.Table() != x.table || row.Ordinal() == 0) {
		invariants.Fail("row %v entered into an index of table %d", row, x.table)
	}
}
