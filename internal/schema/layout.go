package schema

// Layout converts between values, payloads and keys of one table.
//
// An index argument is a position in Table.Indexes; others panic.
type Layout struct {
	table      *Table
	slots      []slot  // per column
	shapes     []shape // per number of columns in a row, 0 to all
	keys       []key   // per index
	minColumns int     // in any row: the primary key was there from the start
}

// NewLayout validates t and compiles it. t must not change afterwards.
func NewLayout(t *Table) (*Layout, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	l := &Layout{table: t}
	l.slots, l.shapes = arrange(t.Columns)
	for i := range t.Indexes {
		l.keys = append(l.keys, l.compileKey(&t.Indexes[i]))
	}
	for _, c := range t.Indexes[0].Columns {
		l.minColumns = max(l.minColumns, c+1)
	}
	return l, nil
}

// Table returns the definition that l was compiled from; read-only.
func (l *Layout) Table() *Table { return l.table }

// full returns the shape of rows with all columns.
func (l *Layout) full() shape { return l.shapes[len(l.slots)] }
