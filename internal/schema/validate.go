package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Validate checks t against the rules and limits of this package. The error
// is a fault.Schema of kind ErrSchema that names the first violation.
func (t *Table) Validate() error {
	if reason := checkName("table", t.Name); reason != "" {
		return t.invalid("", "%s", reason)
	}
	if err := t.validateColumns(); err != nil {
		return err
	}
	return t.validateIndexes()
}

func (t *Table) validateColumns() error {
	if len(t.Columns) == 0 {
		return t.invalid("", "no columns")
	}
	if len(t.Columns) > MaxColumns {
		return t.invalid("", "%d columns, limit %d", len(t.Columns), MaxColumns)
	}
	seen := make(map[string]bool, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		if reason := checkName("column", c.Name); reason != "" {
			return t.invalid(c.Name, "%s", reason)
		}
		if seen[c.Name] {
			return t.invalid(c.Name, "two columns have this name")
		}
		seen[c.Name] = true
		if !c.Type.valid() {
			return t.invalid(c.Name, "unknown column type %d", uint8(c.Type))
		}
	}
	return nil
}

func (t *Table) validateIndexes() error {
	if len(t.Indexes) == 0 || t.Indexes[0].Name != PrimaryIndex {
		return t.invalid("", "no primary key")
	}
	if len(t.Indexes) > MaxIndexes {
		return t.invalid("", "%d indexes, limit %d", len(t.Indexes), MaxIndexes)
	}
	seen := make(map[string]bool, len(t.Indexes))
	for i := range t.Indexes {
		x := &t.Indexes[i]
		if reason := checkName("index", x.Name); reason != "" {
			return t.invalid("", "%s", reason)
		}
		if seen[x.Name] {
			return t.invalid("", "two indexes are named %q", x.Name)
		}
		seen[x.Name] = true
		if err := t.validateIndexColumns(x); err != nil {
			return err
		}
	}
	return t.validatePrimary()
}

func (t *Table) validateIndexColumns(x *Index) error {
	if len(x.Columns) == 0 {
		return t.invalid("", "index %q has no columns", x.Name)
	}
	for i, c := range x.Columns {
		if c < 0 || c >= len(t.Columns) {
			return t.invalid("", "index %q has column %d of %d", x.Name, c, len(t.Columns))
		}
		if slices.Contains(x.Columns[:i], c) {
			return t.invalid(t.Columns[c].Name, "index %q has the column twice", x.Name)
		}
	}
	return nil
}

func (t *Table) validatePrimary() error {
	primary := &t.Indexes[0]
	if !primary.Unique {
		return t.invalid("", "the primary key is not unique")
	}
	for _, c := range primary.Columns {
		if t.Columns[c].Nullable {
			return t.invalid(t.Columns[c].Name, "a primary key column is nullable")
		}
	}
	return nil
}

// checkName returns why name is not a valid name, or "".
func checkName(what, name string) string {
	switch {
	case name == "":
		return "empty " + what + " name"
	case len(name) > MaxNameLength:
		return fmt.Sprintf("%s name of %d bytes, limit %d", what, len(name), MaxNameLength)
	case !utf8.ValidString(name):
		return fmt.Sprintf("%s name %q is not UTF-8", what, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("%s name %q has a control character", what, name)
	}
	return ""
}

func (t *Table) invalid(column, format string, args ...any) error {
	return invalid(t.Name, column, format, args...)
}

func invalid(table, column, format string, args ...any) error {
	return &fault.Schema{Kind: fault.ErrSchema, Table: table, Column: column, Reason: fmt.Sprintf(format, args...)}
}
