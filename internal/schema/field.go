package schema

import (
	"fmt"
	"reflect"
)

// field is a struct field that becomes a column.
type field struct {
	name   string  // as Go code reaches it from the mapped struct: Base.ID
	offset uintptr // from the start of the mapped struct
	column Column
	access access
	tag    tag
}

// fields walks the struct types of one mapping.
type fields struct {
	table string
	list  []field
}

// add appends the fields of t, which lies at the offset in the mapped struct.
// Embedded structs count as if their fields stood in their place.
func (f *fields) add(t reflect.Type, path string, offset uintptr) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		name := path + sf.Name
		tag, reason := parseTag(sf.Tag)
		if reason != "" {
			return f.wrong(name, "", reason)
		}
		if tag.skip {
			continue
		}
		var err error
		switch {
		case sf.Anonymous && isFlattened(sf.Type):
			err = f.embed(sf, tag, name, offset)
		case sf.Anonymous && isEmbeddedPointer(sf):
			err = f.wrong(name, "", "embedded pointer; embed the struct itself, or skip it with a - tag")
		case sf.IsExported():
			err = f.addColumn(sf, tag, name, offset)
		case tag.present:
			err = f.wrong(name, tag.name, "field is not exported but has a tag")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isFlattened reports whether an embedded field of the type gives its own
// fields instead of one column.
func isFlattened(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !isTime(t) && !isNullType(t)
}

// isEmbeddedPointer reports whether an embedded field is a pointer whose
// fields Go promotes: mapping it as nothing would lose columns silently.
func isEmbeddedPointer(sf reflect.StructField) bool {
	return sf.Type.Kind() == reflect.Pointer && isFlattened(sf.Type.Elem())
}

func (f *fields) embed(sf reflect.StructField, tag tag, name string, offset uintptr) error {
	if tag.present {
		return f.wrong(name, tag.name, "tag on an embedded struct; tag its fields")
	}
	return f.add(sf.Type, name+".", offset+sf.Offset)
}

func (f *fields) addColumn(sf reflect.StructField, tag tag, name string, offset uintptr) error {
	column := tag.name
	if column == "" {
		column = snakeCase(sf.Name)
	}
	a, typ, reason := resolve(sf.Type)
	if reason != "" {
		return f.wrong(name, column, reason)
	}
	for i := range f.list {
		if other := &f.list[i]; other.column.Name == column {
			return f.wrong(name, column, fmt.Sprintf("field %s has the same column name", other.name))
		}
	}
	f.list = append(f.list, field{
		name:   name,
		offset: offset + sf.Offset,
		column: Column{Name: column, Type: typ, Nullable: a.nulls != never},
		access: a,
		tag:    tag,
	})
	return nil
}

func (f *fields) wrong(field, column, reason string) error {
	return invalid(f.table, column, "field %s: %s", field, reason)
}

// resolve returns how to reach a field of the type and its column type, or
// the reason why there is none.
func resolve(t reflect.Type) (a access, typ Type, reason string) {
	value := t
	switch {
	case t.Kind() == reflect.Pointer:
		a.nulls, value = byPointer, t.Elem()
	case isNullType(t):
		a.nulls, value = byValid, t.Field(0).Type
		a.valid = t.Field(1).Offset
	}
	if a.nulls != never && (value.Kind() == reflect.Pointer || isNullType(value)) {
		return a, 0, fmt.Sprintf("type %v can be NULL in two ways", t)
	}
	typ, a.form = columnType(value)
	if a.form == 0 {
		return a, 0, fmt.Sprintf("type %v is not supported", t)
	}
	return a, typ, ""
}

// kinds has the column type and the form in memory of values of each kind.
var kinds = [...]struct {
	typ  Type
	form form
}{
	reflect.Bool:    {Bool, formBool},
	reflect.Int:     {Int64, formInt},
	reflect.Int8:    {Int8, form1},
	reflect.Int16:   {Int16, form2},
	reflect.Int32:   {Int32, form4},
	reflect.Int64:   {Int64, form8},
	reflect.Uint:    {Uint64, formUint},
	reflect.Uint8:   {Uint8, form1},
	reflect.Uint16:  {Uint16, form2},
	reflect.Uint32:  {Uint32, form4},
	reflect.Uint64:  {Uint64, form8},
	reflect.Float32: {Float32, form4},
	reflect.Float64: {Float64, form8},
	reflect.String:  {String, formString},
}

// columnType returns the column type for values of t and their form in
// memory, zero when there is none.
func columnType(t reflect.Type) (Type, form) {
	switch k := t.Kind(); {
	case isTime(t):
		return Time, formTime
	case isBytes(t):
		return Bytes, formBytes
	case int(k) < len(kinds):
		return kinds[k].typ, kinds[k].form
	}
	return 0, 0
}
