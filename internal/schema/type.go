package schema

// Type is the type of a column.
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
	String
	Bytes
	Time
)
