package schema

import (
	"reflect"
	"unsafe"
)

// Null is a value that may be NULL; Valid is false for NULL.
type Null[T any] struct {
	V     T
	Valid bool
}

// Mapping converts between structs of one type and the rows of a table.
type Mapping struct{ layout *Layout }

// Map derives a table and the mapping from a struct type and its tags.
func Map(t reflect.Type, table string) (*Table, *Mapping, error) { return nil, nil, nil }

// Layout returns the layout of the mapped table.
func (m *Mapping) Layout() *Layout { return m.layout }

// AppendRow appends the payload of the struct at src.
func (m *Mapping) AppendRow(dst []byte, src unsafe.Pointer) ([]byte, error) { return dst, nil }

// DecodeRow sets every mapped field of the struct at dst from row.
func (m *Mapping) DecodeRow(row []byte, dst unsafe.Pointer) error { return nil }

// AppendKey appends the key of the struct at src in the index.
func (m *Mapping) AppendKey(dst []byte, index int, src unsafe.Pointer) []byte { return dst }
