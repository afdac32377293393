package schema

import "reflect"

// Mapping converts between structs of one type and the rows of a table. The
// pointers that its methods take point to such a struct.
type Mapping struct {
	layout    *Layout
	full      shape
	steps     []step // per column
	variables []int  // columns of variable size
}

// step is the plan for one column.
type step struct {
	slot
	access
	offset uintptr // of the field in the struct
}

// Map derives a table and the mapping from a struct type and its tags.
//
// Every exported field is a column, in the order of the fields; embedded
// structs count as if their fields stood in their place. A field's type is
// bool, an integer, a float, string, []byte, time.Time or a type based on one
// of these, or a pointer to one or Null of one for a nullable column. A tag
// gives the column a name, other than the field's in snake_case, and puts it
// into indexes:
//
//	rekindle:"[name][,pk[=pos]][,index[=name[:pos]]][,unique[=name[:pos]]]"
//	rekindle:"-"
//
// An index without a name is named like the column; options with the same
// name make one index of several columns, in the order of pos (from 1), else
// of the fields. The error is a fault.Schema of kind ErrSchema.
func Map(t reflect.Type, table string) (*Table, *Mapping, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, nil, invalid(table, "", "%v is not a struct type", t)
	}
	f := fields{table: table}
	if err := f.add(t, "", 0); err != nil {
		return nil, nil, err
	}
	if len(f.list) == 0 {
		return nil, nil, invalid(table, "", "type %v has no columns: no exported fields", t)
	}
	def, err := f.define()
	if err != nil {
		return nil, nil, err
	}
	layout, err := NewLayout(def)
	if err != nil {
		return nil, nil, err
	}
	return def, newMapping(layout, f.list), nil
}

func newMapping(l *Layout, list []field) *Mapping {
	m := &Mapping{layout: l, full: l.full(), steps: make([]step, len(list))}
	for i := range list {
		m.steps[i] = step{slot: l.slots[i], access: list[i].access, offset: list[i].offset}
		if l.slots[i].class == variable {
			m.variables = append(m.variables, i)
		}
	}
	return m
}

// Layout returns the layout of the mapped table.
func (m *Mapping) Layout() *Layout { return m.layout }
