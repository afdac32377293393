package schema

import (
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Limits of a table definition and of what is stored under it.
const (
	MaxColumns    = 1024
	MaxIndexes    = 64      // a log record has one bit per index in a 64-bit word
	MaxNameLength = 255     // bytes of a table, column or index name
	MaxKeySize    = 4096    // bytes of an encoded key
	MaxRowSize    = 1 << 30 // bytes of a payload: sizes stay within int32 everywhere
)

// PrimaryIndex is the name of Indexes[0] of every table.
const PrimaryIndex = "primary"

// Column is one column of a table.
type Column struct {
	Name     string `json:"name"`
	Type     Type   `json:"type"`
	Nullable bool   `json:"nullable,omitempty"`
}

// Index is an ordered index over one or more columns. A unique index does not
// constrain rows that have NULL in one of its columns.
type Index struct {
	Name    string `json:"name"`
	Columns []int  `json:"columns"` // positions in Table.Columns, most significant first
	Unique  bool   `json:"unique,omitempty"`
}

// Table is the definition of a table. Indexes[0] is the primary key: unique,
// over columns that are not nullable, named PrimaryIndex.
type Table struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
	Indexes []Index  `json:"indexes"`
}

// Equal reports whether both definitions are the same in every detail.
func (t *Table) Equal(other *Table) bool {
	return t.Name == other.Name && slices.Equal(t.Columns, other.Columns) && slices.EqualFunc(t.Indexes, other.Indexes, Index.equal)
}

func (x Index) equal(other Index) bool {
	return x.Name == other.Name && x.Unique == other.Unique && slices.Equal(x.Columns, other.Columns)
}

// columnNames returns the names of the index's columns, for messages.
func (t *Table) columnNames(x *Index) []string {
	names := make([]string, len(x.Columns))
	for i, c := range x.Columns {
		names[i] = t.Columns[c].Name
	}
	return names
}

// CheckKeySize returns a fault.TooLarge when key, of the index at that
// position, is longer than MaxKeySize.
func CheckKeySize(t *Table, index int, key []byte) error {
	if len(key) <= MaxKeySize {
		return nil
	}
	return &fault.TooLarge{Kind: fault.ErrKeyTooLarge, Table: t.Name, Index: t.Indexes[index].Name, Size: len(key), Limit: MaxKeySize}
}
