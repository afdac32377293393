package index

import (
	"bytes"
	"cmp"

	"github.com/rekindledb/rekindle/rowid"
)

// Range is a half-open interval of keys, Lo ≤ key < Hi, and a direction. A nil
// bound is open; an empty Hi that is not nil is a range without keys, because
// nothing sorts below the empty key.
type Range struct {
	Lo, Hi  []byte
	Reverse bool // from Hi down to Lo, rows of one key descending too
}

// Contains reports whether key lies in the range.
func (r Range) Contains(key []byte) bool {
	return bytes.Compare(key, r.Lo) >= 0 && (r.Hi == nil || bytes.Compare(key, r.Hi) < 0)
}

// Cursor is a place in the order of entries: just behind one entry, whether it
// is still present or not. The zero value stands before the first entry of any
// range. Since it names an entry and not a spot in memory it stays valid
// whatever is inserted or removed, and a scan may turn round: with Reverse
// flipped the next entries are those before the last one delivered.
//
// A cursor is used by one goroutine. Its buffer is reused.
type Cursor struct {
	key     []byte
	row     rowid.ID
	started bool
}

// Started reports whether the cursor stands behind an entry.
func (c *Cursor) Started() bool { return c.started }

// Entry returns the entry that the cursor stands behind. The key is the
// cursor's own and valid until it moves.
func (c *Cursor) Entry() (key []byte, row rowid.ID) { return c.key, c.row }

// Set moves the cursor behind (key, row), which need not be present. The key
// is copied.
func (c *Cursor) Set(key []byte, row rowid.ID) {
	c.key = append(c.key[:0], key...)
	c.row = row
	c.started = true
}

// Reset moves the cursor before the first entry and keeps its buffer.
func (c *Cursor) Reset() {
	c.key = c.key[:0]
	c.row = 0
	c.started = false
}

// Compare orders entries by key, then by row.
func Compare(aKey []byte, aRow rowid.ID, bKey []byte, bRow rowid.ID) int {
	if d := bytes.Compare(aKey, bKey); d != 0 {
		return d
	}
	return cmp.Compare(aRow, bRow)
}
