package txn

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/rowid"
)

// Table is what the engine needs of one table. It is immutable once
// transactions use it; index 0 is the primary key.
type Table struct {
	Manager *Manager // whose transactions may use it
	ID      rowid.Table
	Schema  *schema.Table
	Layout  *schema.Layout
	Version uint16 // schema version written into records
	Rows    *indirection.Array
	IDs     *rowid.Allocator
	Indexes []index.Index
}

// Name is the table's name, for errors and statistics.
func (t *Table) Name() string { return t.Schema.Name }

func (t *Table) row(ordinal uint64) rowid.ID { return rowid.Make(t.ID, ordinal) }

// allKeys is the bitmap with one bit for every index of the table.
func (t *Table) allKeys() uint64 { return 1<<uint(len(t.Indexes)) - 1 }
