// Package schema holds table definitions, the row codec and the mapping
// between Go structs and rows.
//
// A Table names columns and indexes; Indexes[0] is the primary key. A Layout
// is compiled from a Table and converts between column values, payloads and
// index keys (package keyenc). A Mapping is compiled from a struct type and
// does the same straight from and to struct fields, without reflection and
// without boxing.
//
// # Payload
//
// A payload is the bytes of one row, the same in memory and in the log.
// docs/format/row.md describes them; in short, all integers little-endian:
//
//	uint16            number of columns n
//	bitmap            one bit per nullable column among the first n, 1 = NULL
//	fixed area        fixed-width columns in column order, without padding
//	uint32 per column end offsets of the variable columns, relative to data
//	data              bytes of the variable columns, in column order
//
// The place of a column within each area depends only on the columns before
// it. So a row written when the table had fewer columns is read with the same
// column positions and other area offsets; the columns it lacks read as NULL,
// or as the zero value when they are not nullable.
//
// Invariant: a payload is canonical. NULL columns hold zero bytes, unused bits
// of the bitmap are zero, end offsets never decrease and the last one is the
// length of data. Check accepts nothing else, so equal rows are equal bytes
// (except that a NaN keeps its bits and −0 stays apart from +0).
//
// # Trust
//
// Check is the only gate for bytes of unknown origin. DecodeRow verifies what
// memory safety needs and returns an error otherwise. AppendKey, KeyMatches
// and KeyHasNull have no error result: they need a payload for which Check
// holds. Given anything else they may panic or return a wrong key, but never
// read outside the slice.
//
// # Concurrency and lifetime
//
// A Table must not change once a Layout was made of it. Layouts and Mappings
// are immutable and safe for concurrent use. Nothing that a decoder returns
// refers to the payload.
package schema
