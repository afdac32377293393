package rekindle

import (
	"context"
	"iter"
	"reflect"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/txn"
)

// Null is a value that may be NULL: a column type for structs, as an
// alternative to a pointer. It is V if Valid is true, else NULL, as the zero value
// is.
type Null[T any] = schema.Null[T]

// Table gives access to a table through a struct type. It is safe for
// concurrent use and lives as long as its database.
type Table[T any] struct {
	t       *txn.Table
	mapping *schema.Mapping
}

// OpenTable returns the table with a name and rows of type T, a struct. If
// there is none it is created, durably, from T's fields and tags:
//
//	type Account struct {
//		ID     int64  `rekindle:",pk"`
//		Owner  string `rekindle:"owner,index"`
//		Number string `rekindle:",unique"`
//		Branch int32  `rekindle:",index=place:1"`
//		City   string `rekindle:",index=place:2"`
//		Note   *string
//		cache  int    `rekindle:"-"`
//	}
//
// A column is named by the tag's first word, else after the field in
// snake_case. "pk" marks the primary key, several fields make a composite one;
// "index" and "unique" make an index, which is named after the column, or by
// =name: fields that give the same name share one. The order of the columns in a
// composite key is that of the fields, or given by numbers from 1: "pk=2",
// "index=name:2".
//
// Columns are of type bool, any integer, float, string, []byte or time.Time, or a
// type with one of those underneath; NULL through a pointer or Null. Unexported fields and
// those tagged "-" are not stored; embedded structs are. A time comes back in UTC,
// to the nanosecond; a nil []byte comes back empty.
//
// Errors: ErrSchema for a type or tags that cannot be stored;
// ErrSchemaMismatch if the table exists with other columns or indexes; ErrNotFound
// if there is none in a read-only database.
func OpenTable[T any](ctx context.Context, db *DB, name string) (*Table[T], error) {
	wanted, mapping, err := schema.Map(reflect.TypeFor[T](), name)
	if err != nil {
		if db.closed.Load() { // before all that could be said of the arguments
			err = fault.ErrClosed
		}
		return nil, err
	}
	t, err := db.catalog.openTable(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &Table[T]{t: t, mapping: mapping}, nil
}

// Get reads the row whose primary key is in row's key fields into row.
// ErrNotFound if there is none; row is then unchanged.
func (t *Table[T]) Get(tx *Tx, row *T) error { return t.get(tx, 0, row) }

// GetMany reads the rows whose primary keys are in the key fields of rows, in
// place and faster than one by one. It returns the positions of those that are
// not there, which are left unchanged.
func (t *Table[T]) GetMany(tx *Tx, rows []T) (missing []int, err error) {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return nil, err
	}
	defer c.Leave()
	keys := make([][]byte, len(rows))
	c.Key = c.Key[:0]
	for i := range rows {
		from := len(c.Key)
		c.Key = t.mapping.AppendKey(c.Key, 0, unsafe.Pointer(&rows[i]))
		keys[i] = c.Key[from:len(c.Key):len(c.Key)] // a grown buffer leaves earlier keys where they are
	}
	next := 0
	err = c.GetMany(t.t, 0, keys, func(i int, stored []byte) error {
		for ; next < i; next++ {
			missing = append(missing, next)
		}
		next++
		return t.mapping.DecodeRow(stored, unsafe.Pointer(&rows[i]))
	})
	for ; err == nil && next < len(rows); next++ {
		missing = append(missing, next)
	}
	return missing, err
}

// GetBy reads the row whose key in the named unique index is in row's fields
// of that index. ErrNotFound if there is none; ErrInvalidQuery if there is no
// such index, it is not unique, or one of the fields is NULL, which any number of
// rows may have.
func (t *Table[T]) GetBy(tx *Tx, index string, row *T) error {
	number, err := t.unique(index, row)
	if err != nil {
		return tx.unlessEnded(t.t, err)
	}
	return t.get(tx, number, row)
}

// unique returns the number of an index in which at most one row has row's key.
func (t *Table[T]) unique(index string, row *T) (number int, err error) {
	if number, err = indexNamed(t.t, index); err != nil {
		return 0, err
	}
	if !t.t.Schema.Indexes[number].Unique {
		return 0, invalidQuery(t.t, "index %s is not unique; use Scan", index)
	}
	if t.mapping.KeyHasNull(number, unsafe.Pointer(row)) {
		return 0, invalidQuery(t.t, "NULL is not unique in index %s; use Scan", index)
	}
	return number, nil
}

func (t *Table[T]) get(tx *Tx, index int, row *T) error {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return err
	}
	defer c.Leave()
	c.Key = t.mapping.AppendKey(c.Key[:0], index, unsafe.Pointer(row))
	stored, found, err := c.Get(t.t, index, c.Key)
	if err != nil {
		return err
	}
	if !found {
		return notFound(t.t, index, c.Key)
	}
	return t.mapping.DecodeRow(stored, unsafe.Pointer(row))
}

// Insert adds a row. ErrDuplicateKey if its primary key or another unique key
// is taken.
func (t *Table[T]) Insert(tx *Tx, row *T) error { return t.write(tx, row, insertRow) }

// Update replaces the row with the primary key of row. ErrNotFound if there is
// none, ErrDuplicateKey if another row has one of its new unique keys.
func (t *Table[T]) Update(tx *Tx, row *T) error { return t.write(tx, row, updateRow) }

// Upsert replaces the row with the primary key of row, or adds it.
func (t *Table[T]) Upsert(tx *Tx, row *T) error { return t.write(tx, row, upsertRow) }

// write encodes a row and runs a statement with it.
func (t *Table[T]) write(tx *Tx, row *T, statement func(*txn.Call, *txn.Table) error) error {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return err
	}
	defer c.Leave()
	if c.Row, err = t.mapping.AppendRow(c.Row[:0], unsafe.Pointer(row)); err != nil {
		return err
	}
	return statement(c, t.t)
}

// Delete removes the row whose primary key is in row's key fields.
// ErrNotFound if there is none.
func (t *Table[T]) Delete(tx *Tx, row *T) error {
	c, err := tx.inner.Enter(t.t)
	if err != nil {
		return err
	}
	defer c.Leave()
	c.Key = t.mapping.AppendKey(c.Key[:0], 0, unsafe.Pointer(row))
	return deleteRow(c, t.t)
}

// Scan returns the rows that a query selects, in the order of its index. They
// are those of the transaction's snapshot plus its own changes, except that
// rows which the transaction inserts or moves within this index while the loop
// runs are not met. Any statement of the transaction may run inside the loop.
// An error is the last thing delivered.
func (t *Table[T]) Scan(tx *Tx, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		err := scan(tx, t.t, q, func(stored []byte) (bool, error) {
			var row T
			if err := t.mapping.DecodeRow(stored, unsafe.Pointer(&row)); err != nil {
				return false, err
			}
			return yield(row, nil), nil
		})
		if err != nil {
			yield(none, err)
		}
	}
}

// Visit calls fn with each row that a query selects, without allocating: the
// row is overwritten by the next one, and its strings and byte slices, but for
// those behind pointers, are valid only during the call. Otherwise it is like
// Scan; an error of fn ends it and is returned.
func (t *Table[T]) Visit(tx *Tx, q Query, fn func(row *T) error) error {
	var row T
	return scan(tx, t.t, q, func(stored []byte) (bool, error) {
		if err := t.mapping.DecodeShared(stored, unsafe.Pointer(&row)); err != nil {
			return false, err
		}
		return true, fn(&row)
	})
}

// All returns all rows in the order of the primary key.
func (t *Table[T]) All(tx *Tx) iter.Seq2[T, error] { return t.Scan(tx, Query{}) }

// Name returns the table's name.
func (t *Table[T]) Name() string { return t.t.Name() }

// These statements work on the row, or the key, in the call's buffer.

func insertRow(c *txn.Call, t *txn.Table) error { return c.Insert(t, c.Row) }

func upsertRow(c *txn.Call, t *txn.Table) error { return c.Upsert(t, c.Row) }

func updateRow(c *txn.Call, t *txn.Table) error {
	found, err := c.Update(t, c.Row)
	if err == nil && !found {
		err = notFound(t, 0, t.Layout.AppendKey(c.Key[:0], 0, c.Row))
	}
	return err
}

func deleteRow(c *txn.Call, t *txn.Table) error {
	found, err := c.Delete(t, c.Key)
	if err == nil && !found {
		err = notFound(t, 0, c.Key)
	}
	return err
}

func notFound(t *txn.Table, index int, key []byte) error {
	e := &fault.NotFound{Table: t.Name(), Key: t.Layout.FormatKey(index, key)}
	if index > 0 {
		e.Index = t.Schema.Indexes[index].Name
	}
	return e
}
