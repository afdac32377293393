package rekindle

import (
	"context"
	"iter"

	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/txn"
)

// Row is a row as a list of column values, in the order of the schema: bool,
// int8 to int64, uint8 to uint64, float32, float64, string, []byte, time.Time,
// or nil for NULL. Any integer type is taken that fits the column.
type Row []any

// Schema types of the row API, for tools that do not know the struct type.
type (
	// TableSchema describes a table: its Name, its Columns and its Indexes.
	// Indexes[0] is the primary key: named "primary", unique, over columns that are
	// not nullable.
	TableSchema = schema.Table
	// Column describes a column: its Name, its Type, and whether it is Nullable.
	Column = schema.Column
	// Index describes an index: its Name, the positions of its Columns in those of
	// the table, most significant first, and whether it is Unique. A unique index
	// does not constrain rows with NULL in one of its columns.
	Index = schema.Index
	// ColumnType is the type of a column.
	ColumnType = schema.Type
)

// Column types.
const (
	Bool    = schema.Bool
	Int8    = schema.Int8
	Int16   = schema.Int16
	Int32   = schema.Int32
	Int64   = schema.Int64
	Uint8   = schema.Uint8
	Uint16  = schema.Uint16
	Uint32  = schema.Uint32
	Uint64  = schema.Uint64
	Float32 = schema.Float32
	Float64 = schema.Float64
	String  = schema.String
	Bytes   = schema.Bytes
	Time    = schema.Time
)

// RowTable gives access to a table through value lists. It is safe for
// concurrent use.
type RowTable struct{ t *txn.Table }

// CreateTable returns the table with a schema, making it if there is none.
// Errors are those of OpenTable.
func (db *DB) CreateTable(ctx context.Context, s TableSchema) (*RowTable, error) {
	t, err := db.catalog.openTable(ctx, &s)
	if err != nil {
		return nil, err
	}
	return &RowTable{t}, nil
}

// Table returns an existing table; ErrNotFound if there is none.
func (db *DB) Table(name string) (*RowTable, error) {
	t, err := db.catalog.find(name)
	if err != nil {
		return nil, err
	}
	return &RowTable{t}, nil
}

// Tables returns the schemas of all tables, by name.
func (db *DB) Tables() []TableSchema { return db.catalog.schemas() }

// Schema returns the table's schema, which must not be changed.
func (t *RowTable) Schema() *TableSchema { return t.t.Schema }

// Get returns the row with a primary key; ErrNotFound if there is none.
func (t *RowTable) Get(tx *Tx, key ...any) (Row, error) {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return nil, err
	}
	defer c.Leave()
	if c.Key, err = t.t.Layout.AppendKeyValues(c.Key[:0], 0, key, false); err != nil {
		return nil, err
	}
	stored, found, err := c.Get(t.t, 0, c.Key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, notFound(t.t, 0, c.Key)
	}
	return t.t.Layout.DecodeRow(stored)
}

// Insert adds a row; see Table.Insert.
func (t *RowTable) Insert(tx *Tx, row Row) error { return t.write(tx, row, insertRow) }

// Update replaces the row with the primary key of row; see Table.Update.
func (t *RowTable) Update(tx *Tx, row Row) error { return t.write(tx, row, updateRow) }

// Upsert replaces the row with the primary key of row, or adds it.
func (t *RowTable) Upsert(tx *Tx, row Row) error { return t.write(tx, row, upsertRow) }

func (t *RowTable) write(tx *Tx, row Row, statement func(*txn.Call, *txn.Table) error) error {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return err
	}
	defer c.Leave()
	if c.Row, err = t.t.Layout.AppendRow(c.Row[:0], row); err != nil {
		return err
	}
	return statement(c, t.t)
}

// Delete removes the row with a primary key; ErrNotFound if there is none.
func (t *RowTable) Delete(tx *Tx, key ...any) error {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return err
	}
	defer c.Leave()
	if c.Key, err = t.t.Layout.AppendKeyValues(c.Key[:0], 0, key, false); err != nil {
		return err
	}
	return deleteRow(c, t.t)
}

// Scan returns the rows that a query selects; see Table.Scan.
func (t *RowTable) Scan(tx *Tx, q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		err := scan(tx, t.t, q, func(stored []byte) (bool, error) {
			row, err := t.t.Layout.DecodeRow(stored)
			if err != nil {
				return false, err
			}
			return yield(row, nil), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}
