package rowid

import "fmt"

// MaxOrdinal is the largest ordinal.
const MaxOrdinal = 1<<ordinalBits - 1

const ordinalBits = 48

// Table identifies a table of the database. Table 0 is the catalogue.
type Table uint16

// ID is the identity of a row: its table and its ordinal.
type ID uint64

// Make returns the ID of a row. The ordinal must not exceed MaxOrdinal.
func Make(t Table, ordinal uint64) ID { return ID(t)<<ordinalBits | ID(ordinal) }

// Table returns the table of the row.
func (id ID) Table() Table { return Table(id >> ordinalBits) }

// Ordinal returns the slot of the row in the array of its table.
func (id ID) Ordinal() uint64 { return uint64(id & MaxOrdinal) }

// String returns "table:ordinal" in decimal.
func (id ID) String() string { return fmt.Sprintf("%d:%d", id.Table(), id.Ordinal()) }
