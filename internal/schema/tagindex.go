package schema

import (
	"cmp"
	"fmt"
	"slices"
)

// tagIndex gathers the tag entries of one index.
type tagIndex struct {
	name    string
	unique  bool
	members []member
}

type member struct {
	column int
	pos    int // from 1; 0 = not given
}

// define returns the table of the fields, not yet validated.
func (f *fields) define() (*Table, error) {
	t := &Table{Name: f.table}
	for i := range f.list {
		t.Columns = append(t.Columns, f.list[i].column)
	}
	var err error
	t.Indexes, err = f.indexes()
	return t, err
}

// indexes builds the index definitions from the tags: the primary key, then
// the others in the order of their first column.
func (f *fields) indexes() ([]Index, error) {
	list := []*tagIndex{{name: PrimaryIndex, unique: true}}
	for column := range f.list {
		for _, e := range f.list[column].tag.entries {
			reason := ""
			if list, reason = addEntry(list, e, f.list[column].column.Name, column); reason != "" {
				return nil, f.wrong(f.list[column].name, f.list[column].column.Name, reason)
			}
		}
	}
	if len(list[0].members) == 0 {
		return nil, invalid(f.table, "", "no primary key: no field has the pk option")
	}
	out := make([]Index, len(list))
	for i, x := range list {
		if reason := x.order(); reason != "" {
			return nil, invalid(f.table, f.list[x.members[0].column].column.Name, "%s", reason)
		}
		out[i] = Index{Name: x.name, Unique: x.unique}
		for _, m := range x.members {
			out[i].Columns = append(out[i].Columns, m.column)
		}
	}
	return out, nil
}

func addEntry(list []*tagIndex, e tagEntry, columnName string, column int) (_ []*tagIndex, reason string) {
	name := cmp.Or(e.index, columnName)
	if name == PrimaryIndex && !e.primary {
		return list, fmt.Sprintf("index name %q is reserved for the primary key", name)
	}
	at := slices.IndexFunc(list, func(x *tagIndex) bool { return x.name == name })
	if at < 0 {
		at = len(list)
		list = append(list, &tagIndex{name: name, unique: e.unique})
	}
	x := list[at]
	if x.unique != e.unique {
		return list, fmt.Sprintf("index %q is declared both index and unique", name)
	}
	if slices.ContainsFunc(x.members, func(m member) bool { return m.column == column }) {
		return list, fmt.Sprintf("the column is twice in index %q", name)
	}
	x.members = append(x.members, member{column: column, pos: e.pos})
	return list, ""
}

// order sorts the columns by position; without positions they stay in the
// order of the fields.
func (x *tagIndex) order() (reason string) {
	given := 0
	for _, m := range x.members {
		if m.pos > 0 {
			given++
		}
	}
	if given == 0 {
		return ""
	}
	if given < len(x.members) {
		return fmt.Sprintf("index %q: some columns have a position and some have none", x.name)
	}
	slices.SortStableFunc(x.members, func(a, b member) int { return cmp.Compare(a.pos, b.pos) })
	for i, m := range x.members {
		if m.pos != i+1 {
			return fmt.Sprintf("index %q: positions of its %d columns are not 1 to %d", x.name, len(x.members), len(x.members))
		}
	}
	return ""
}
