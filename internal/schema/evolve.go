package schema

import (
	"fmt"
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
)

// CompatibleWith returns nil when t equals the stored definition, else a
// fault.Schema of kind ErrSchemaMismatch naming the first difference.
func (t *Table) CompatibleWith(stored *Table) error {
	if t.Name != stored.Name {
		return t.mismatch("", "stored name is %q", stored.Name)
	}
	for i := range min(len(t.Columns), len(stored.Columns)) {
		if err := t.compareColumn(t.Columns[i], stored.Columns[i]); err != nil {
			return err
		}
	}
	if len(t.Columns) != len(stored.Columns) {
		return t.mismatch("", "%d columns, stored are %d", len(t.Columns), len(stored.Columns))
	}
	for i := range min(len(t.Indexes), len(stored.Indexes)) {
		if err := t.compareIndex(&t.Indexes[i], stored, &stored.Indexes[i]); err != nil {
			return err
		}
	}
	if len(t.Indexes) != len(stored.Indexes) {
		return t.mismatch("", "%d indexes, stored are %d", len(t.Indexes), len(stored.Indexes))
	}
	return nil
}

// AppendsTo reports whether t is the stored definition plus one or more
// columns at the end, the indexes being the same. Rows stored under the old
// definition can be read under t.
func (t *Table) AppendsTo(stored *Table) bool {
	n := len(stored.Columns)
	return len(t.Columns) > n && t.Name == stored.Name && slices.Equal(t.Columns[:n], stored.Columns) &&
		slices.EqualFunc(t.Indexes, stored.Indexes, Index.equal)
}

func (t *Table) compareColumn(c, stored Column) error {
	switch {
	case c.Name != stored.Name:
		return t.mismatch(c.Name, "stored column at this position is %q", stored.Name)
	case c.Type != stored.Type:
		return t.mismatch(c.Name, "type %v, stored is %v", c.Type, stored.Type)
	case c.Nullable != stored.Nullable:
		return t.mismatch(c.Name, "%s, stored is %s", nullability(c), nullability(stored))
	}
	return nil
}

func (t *Table) compareIndex(x *Index, other *Table, stored *Index) error {
	switch {
	case x.Name != stored.Name:
		return t.mismatch("", "index %q, stored at this position is %q", x.Name, stored.Name)
	case x.Unique != stored.Unique:
		return t.mismatch("", "index %q: unique %v, stored is %v", x.Name, x.Unique, stored.Unique)
	case !slices.Equal(x.Columns, stored.Columns):
		return t.mismatch("", "index %q: columns %q, stored are %q", x.Name, t.columnNames(x), other.columnNames(stored))
	}
	return nil
}

func nullability(c Column) string {
	if c.Nullable {
		return "nullable"
	}
	return "not nullable"
}

func (t *Table) mismatch(column, format string, args ...any) error {
	return &fault.Schema{Kind: fault.ErrSchemaMismatch, Table: t.Name, Column: column, Reason: fmt.Sprintf(format, args...)}
}
