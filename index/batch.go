package index

import (
	"slices"

	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// Sizes of the fills of a batch, in entries. The first one of a scan is small,
// so that a scan for a few rows does not pay for many; they then grow to full
// size in one step.
const (
	FirstFill = 8
	FullFill  = 64
)

// Batch is what one call to Scan delivers: entries in flat buffers that are
// reused by the next call. The zero value is ready. It is used by one
// goroutine; what Key returns is valid until the next Scan, Begin or Reset.
type Batch struct {
	First int // most entries of a scan's first fill; 0 means FirstFill
	Max   int // most entries of any other fill; 0 means FullFill

	keys  []byte
	ends  []int // end of key i in keys
	rows  []rowid.ID
	limit int
}

// Len returns the number of entries.
func (b *Batch) Len() int { return len(b.rows) }

// Key returns the key of entry i.
func (b *Batch) Key(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.keys[start:b.ends[i]:b.ends[i]]
}

// Row returns the row of entry i.
func (b *Batch) Row(i int) rowid.ID { return b.rows[i] }

// Rows returns the rows of all entries, valid as long as Key's result.
func (b *Batch) Rows() []rowid.ID { return b.rows }

// Reset drops the entries and keeps the buffers.
func (b *Batch) Reset() {
	invariants.Mangle(b.keys)
	b.keys = b.keys[:0]
	b.ends = b.ends[:0]
	b.rows = b.rows[:0]
}

// Begin empties the batch for a fill behind c and sets the size of the fill.
// It is the first thing an index does in Scan.
func (b *Batch) Begin(c *Cursor) {
	b.Reset()
	if c.Started() {
		b.limit = orDefault(b.Max, FullFill)
	} else {
		b.limit = orDefault(b.First, FirstFill)
	}
}

// Room returns how many entries the fill still takes.
func (b *Batch) Room() int { return b.limit - len(b.rows) }

// Append adds an entry, copying the key. It is for the index, within Room.
func (b *Batch) Append(key []byte, row rowid.ID) {
	b.keys = append(b.keys, key...)
	b.ends = append(b.ends, len(b.keys))
	b.rows = append(b.rows, row)
}

// AppendParts adds an entry whose key is prefix and rest joined, for an index
// that keeps them apart.
func (b *Batch) AppendParts(prefix, rest []byte, row rowid.ID) {
	b.keys = append(b.keys, prefix...)
	b.Append(rest, row)
}

// Extend adds n entries with keys of size bytes each, which the index then fills
// in: all keys one after the other, and the rows.
func (b *Batch) Extend(n, size int) (keys []byte, rows []rowid.ID) {
	key, row := len(b.keys), len(b.rows)
	b.keys = slices.Grow(b.keys, n*size)[:key+n*size]
	b.rows = slices.Grow(b.rows, n)[:row+n]
	b.ends = slices.Grow(b.ends, n)
	for i := range n {
		b.ends = append(b.ends, key+(i+1)*size)
	}
	return b.keys[key:], b.rows[row:]
}

// Finish moves c behind the last entry of the fill; an empty fill leaves it.
func (b *Batch) Finish(c *Cursor) {
	if n := b.Len(); n > 0 {
		c.Set(b.Key(n-1), b.Row(n-1))
	}
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}
