package schema

// Limits of a table definition.
const (
	MaxColumns    = 1024
	MaxIndexes    = 64   // a log record has one bit per index in a 64-bit word
	MaxNameLength = 255  // bytes of a table, column or index name
	MaxKeySize    = 4096 // bytes of an encoded key
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

// Validate checks t against the rules and limits of this package.
func (t *Table) Validate() error { return nil }

// Equal reports whether both definitions are the same in every detail.
func (t *Table) Equal(other *Table) bool { return false }

// CompatibleWith returns nil when t equals the stored definition, else a
// fault.Schema of kind ErrSchemaMismatch naming the first difference.
func (t *Table) CompatibleWith(stored *Table) error { return nil }

// AppendsTo reports whether t is the stored definition plus one or more
// columns at the end.
func (t *Table) AppendsTo(stored *Table) bool { return false }

// Marshal returns the stable JSON form of a valid table.
func (t *Table) Marshal() ([]byte, error) { return nil, nil }

// Unmarshal reads what Marshal wrote, strictly, and validates it.
func Unmarshal(data []byte) (*Table, error) { return nil, nil }

// CheckKeySize returns a fault.TooLarge when key is longer than MaxKeySize.
func CheckKeySize(t *Table, index int, key []byte) error { return nil }
