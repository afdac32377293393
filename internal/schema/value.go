package schema

import (
	"math"
	"reflect"
	"time"

	"github.com/rekindledb/rekindle/index/keyenc"
)

// setCell converts a value of the row API for the column into c, which is the
// zero cell.
func (l *Layout) setCell(c *cell, column int, v any) error {
	col := &l.table.Columns[column]
	if v == nil {
		if !col.Nullable {
			return l.table.invalid(col.Name, "NULL, but the column is not nullable")
		}
		c.null = true
		return nil
	}
	switch c.convert(col.Type, v) {
	case outOfRange:
		return l.table.invalid(col.Name, "value out of the range of %v", col.Type)
	case inexact:
		return l.table.invalid(col.Name, "value is not exactly a %v", col.Type)
	case wrongType:
		return l.table.invalid(col.Name, "value of type %v, want %v", reflect.TypeOf(v), col.Type)
	}
	return nil
}

// fit is whether a Go value has a place in a column.
type fit uint8

const (
	fits fit = iota
	wrongType
	outOfRange
	inexact
)

// convert sets the cell to a value that is not nil.
func (c *cell) convert(t Type, v any) fit {
	switch x := v.(type) {
	case int:
		return c.convertInt(t, int64(x))
	case int8:
		return c.convertInt(t, int64(x))
	case int16:
		return c.convertInt(t, int64(x))
	case int32:
		return c.convertInt(t, int64(x))
	case int64:
		return c.convertInt(t, x)
	case uint:
		return c.convertUint(t, uint64(x))
	case uint8:
		return c.convertUint(t, uint64(x))
	case uint16:
		return c.convertUint(t, uint64(x))
	case uint32:
		return c.convertUint(t, uint64(x))
	case uint64:
		return c.convertUint(t, x)
	case bool:
		return c.convertBool(t, x)
	case float32:
		return c.convertFloat32(t, x)
	case float64:
		return c.convertFloat64(t, x)
	case string:
		return c.convertData(t, String, stringBytes(x))
	case []byte:
		return c.convertData(t, Bytes, x)
	case time.Time:
		c.setInstant(keyenc.InstantOf(x))
		return want(t, Time)
	default:
		return c.convertNamed(t, reflect.ValueOf(v))
	}
}

// convertNamed is convert for types based on one of the types there, except
// time.Time: its conversion would move every value of the row API to the heap.
func (c *cell) convertNamed(t Type, v reflect.Value) fit {
	switch {
	case v.CanInt():
		return c.convertInt(t, v.Int())
	case v.CanUint() && v.Kind() != reflect.Uintptr:
		return c.convertUint(t, v.Uint())
	case v.Kind() == reflect.Float32:
		return c.convertFloat32(t, float32(v.Float()))
	case v.Kind() == reflect.Float64:
		return c.convertFloat64(t, v.Float())
	case v.Kind() == reflect.Bool:
		return c.convertBool(t, v.Bool())
	case v.Kind() == reflect.String:
		return c.convertData(t, String, stringBytes(v.String()))
	case isBytes(v.Type()):
		return c.convertData(t, Bytes, v.Bytes())
	}
	return wrongType
}

func (c *cell) convertInt(t Type, v int64) fit {
	info := &types[t]
	switch {
	case info.class == signed:
		if shift := 64 - 8*info.width; v<<shift>>shift != v {
			return outOfRange
		}
		c.word = uint64(v)
		return fits
	case info.class == unsigned && t != Bool && v < 0:
		return outOfRange
	default:
		return c.convertUint(t, uint64(v))
	}
}

func (c *cell) convertUint(t Type, v uint64) fit {
	info := &types[t]
	bits := 8 * info.width
	switch {
	case t == Bool || info.class != signed && info.class != unsigned:
		return wrongType
	case info.class == signed:
		bits--
	}
	if v>>bits != 0 {
		return outOfRange
	}
	c.word = v
	return fits
}

func (c *cell) convertBool(t Type, v bool) fit {
	if v {
		c.word = 1
	}
	return want(t, Bool)
}

func (c *cell) convertFloat32(t Type, v float32) fit {
	if t == Float32 { // not through float64: a NaN keeps its bits
		c.word = uint64(math.Float32bits(v))
		return fits
	}
	return c.convertFloat64(t, float64(v))
}

func (c *cell) convertFloat64(t Type, v float64) fit {
	switch {
	case t == Float64:
		c.word = math.Float64bits(v)
	case t != Float32:
		return wrongType
	case v != v || float64(float32(v)) == v:
		c.word = uint64(math.Float32bits(float32(v)))
	default:
		return inexact
	}
	return fits
}

func (c *cell) convertData(t, wanted Type, data []byte) fit {
	c.data = data
	return want(t, wanted)
}

func want(t, wanted Type) fit {
	if t == wanted {
		return fits
	}
	return wrongType
}

// value returns a cell that is not NULL as a Go value of its own memory.
func (c *cell) value(t Type) any {
	switch t {
	case Bool:
		return c.word != 0
	case Int8:
		return int8(c.word)
	case Int16:
		return int16(c.word)
	case Int32:
		return int32(c.word)
	case Int64:
		return int64(c.word)
	case Uint8:
		return uint8(c.word)
	case Uint16:
		return uint16(c.word)
	case Uint32:
		return uint32(c.word)
	case Uint64:
		return c.word
	case Float32:
		return math.Float32frombits(uint32(c.word))
	case Float64:
		return math.Float64frombits(c.word)
	case String:
		return string(c.data)
	case Bytes:
		return copyBytes(c.data)
	default:
		return c.instant().Time()
	}
}

// copyBytes returns a copy that is not nil: in a row, empty is not NULL.
func copyBytes(b []byte) []byte { return append([]byte{}, b...) }
