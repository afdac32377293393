package index

import (
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Checker decides whether a key may have one more entry. It is the unique
// constraint as the index sees it: the index knows who else is entered under
// the key, the transaction layer knows whether that row still counts.
type Checker interface {
	// Check is called under the key's latch, before the entry is added, for
	// each present entry of exactly the key that belongs to another row. An
	// error aborts the insert and is returned by it as it is. An index that
	// restarts an operation may ask for the same row again.
	Check(other rowid.ID) error
}

// Index is an ordered set of entries (key, RowID), safe for concurrent use.
//
// Keys passed in are not kept: the index copies what it stores. Keys handed
// out are copies.
type Index interface {
	// Insert adds (key, row). With a checker every other row entered under the
	// key is put to it first, also when (key, row) is present already; adding a
	// present entry changes nothing. A nil checker allows everything.
	// Errors: the checker's own; fault.ErrMemoryLimit, with nothing added.
	Insert(h *epoch.Handle, key []byte, row rowid.ID, unique Checker) error

	// Remove takes (key, row) out if dead, asked under the key's latch, says
	// so, and reports whether it did. An absent entry is not asked about. What
	// counts is an answer given while the latch was held; an index that
	// restarts may ask again. When in doubt dead returns false.
	Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error)

	// Lookup appends the rows of all entries with exactly this key to dst, in
	// ascending order, and returns the extended slice. It does not allocate
	// when dst has room.
	Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error)

	// Scan empties b and fills it with the next entries of r behind c, in the
	// direction of r, and moves c behind them. It returns false when nothing
	// was left in the range at that time; true with an empty batch is allowed
	// and means "call again". On an error b and c are undefined.
	//
	// Each call sees the index as it then is: an entry present from the first
	// call to the last is delivered exactly once, one that comes or goes
	// meanwhile at most once.
	Scan(h *epoch.Handle, r Range, c *Cursor, b *Batch) (more bool, err error)

	Stats() Stats

	// Close releases the memory and the mapped files of the index; files stay.
	Close() error
}

// BatchLooker is implemented by indexes that can look up many keys faster
// together than one by one.
type BatchLooker interface {
	// LookupBatch appends to dst, for each key, what Lookup would, and to ends
	// the length that dst then has. Each key is looked up at a time of its own.
	LookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) ([]rowid.ID, []int, error)
}

// LookupMany is LookupBatch for any index.
func LookupMany(ix Index, h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) ([]rowid.ID, []int, error) {
	if b, ok := ix.(BatchLooker); ok {
		return b.LookupBatch(h, keys, dst, ends)
	}
	var err error
	for _, key := range keys {
		if dst, err = ix.Lookup(h, key, dst); err != nil {
			return dst, ends, err
		}
		ends = append(ends, len(dst))
	}
	return dst, ends, nil
}

// Stats describes an index at one moment; under concurrent change the figures
// need not belong to exactly the same one.
type Stats struct {
	Entries int64 // entries present, garbage included; of a chain of trees without looking for duplicates
	Bytes   int64 // memory held, approximate
	Mapped  int64 // bytes of mapped files, not part of Bytes
}

// Builder loads an empty index in ascending order, at a fraction of the cost
// of inserting. It is used by one goroutine.
type Builder interface {
	// Add appends an entry. Entries come in ascending order of (key, RowID);
	// repeating the last one is harmless, going back is ErrOrder.
	Add(key []byte, row rowid.ID) error
	// Finish returns the index. The builder is of no use afterwards.
	Finish() (Index, error)
	// Abandon releases what was built. After Finish it does nothing.
	Abandon()
}
