// Package schema holds table definitions, the row codec and the mapping
// between Go structs and rows.
//
// A Table names columns and indexes; Indexes[0] is the primary key. A Layout
// is compiled from a Table and converts between column values, payloads (the
// bytes of a row, the same in memory and in the log) and index keys (package
// keyenc). A Mapping is compiled from a struct type and does the same straight
// from and to struct fields, without reflection and without boxing.
//
// Tables are not changed once a Layout was made of them. Layouts and Mappings
// are immutable and safe for concurrent use.
package schema
