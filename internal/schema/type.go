package schema

import (
	"fmt"
	"slices"
)

// Type is the type of a column. Types are stored by name, not by number.
type Type uint8

// Column types. Go's int and uint are stored as Int64 and Uint64.
const (
	Bool Type = iota + 1
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	String // any bytes, like a Go string; UTF-8 is not required
	Bytes
	Time // instant in UTC, the range and resolution of time.Time
)

// class is what codecs tell apart; with the width it decides the encoding.
type class uint8

const (
	unsigned class = iota // bool too: 0 or 1
	signed
	float
	instant
	variable
)

// timeSize is the width of an instant in a payload: int64 seconds since year
// 1 (see keyenc.Instant) and uint32 nanoseconds.
const timeSize = 12

type typeInfo struct {
	name  string
	class class
	width uint8 // bytes in the fixed area of a payload; 0 for variable types
}

// types describes each Type; its order is the order of the constants.
var types = [...]typeInfo{
	Bool:    {"bool", unsigned, 1},
	Int8:    {"int8", signed, 1},
	Int16:   {"int16", signed, 2},
	Int32:   {"int32", signed, 4},
	Int64:   {"int64", signed, 8},
	Uint8:   {"uint8", unsigned, 1},
	Uint16:  {"uint16", unsigned, 2},
	Uint32:  {"uint32", unsigned, 4},
	Uint64:  {"uint64", unsigned, 8},
	Float32: {"float32", float, 4},
	Float64: {"float64", float, 8},
	String:  {"string", variable, 0},
	Bytes:   {"bytes", variable, 0},
	Time:    {"time", instant, timeSize},
}

func (t Type) valid() bool { return t >= Bool && int(t) < len(types) }

// String returns the name of the type, such as "int64".
func (t Type) String() string {
	if !t.valid() {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return types[t].name
}

// MarshalText returns the name under which the type is stored.
func (t Type) MarshalText() ([]byte, error) {
	if !t.valid() {
		return nil, fmt.Errorf("unknown column type %d", uint8(t))
	}
	return []byte(types[t].name), nil
}

// UnmarshalText reads a name written by MarshalText.
func (t *Type) UnmarshalText(text []byte) error {
	i := slices.IndexFunc(types[Bool:], func(info typeInfo) bool { return info.name == string(text) })
	if i < 0 {
		return fmt.Errorf("unknown column type %q", text)
	}
	*t = Bool + Type(i)
	return nil
}
