package schema

import (
	"reflect"
	"strings"
	"time"
)

// Null is a value that may be NULL, without the allocation of a pointer.
// Valid is false for NULL; V is then ignored when stored and zero when read.
type Null[T any] struct {
	V     T
	Valid bool
}

var (
	nullPackage = reflect.TypeFor[Null[bool]]().PkgPath()
	timeType    = reflect.TypeFor[time.Time]()
)

// isNullType reports whether t is an instance of Null.
func isNullType(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == nullPackage && strings.HasPrefix(t.Name(), "Null[")
}

// isTime reports whether t is time.Time or based on it.
func isTime(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.ConvertibleTo(timeType)
}

// isBytes reports whether t is a slice of bytes.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
