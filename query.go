package rekindle

import (
	"fmt"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/keyenc"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/txn"
)

// Query selects a range of rows by an index. The zero value is the whole table
// in the order of its primary key.
type Query struct {
	// Index to use, by name; the primary key if empty.
	Index string
	// Prefix holds values of the first columns of the index: only rows that
	// have them are selected.
	Prefix []any
	// Starting lets the last value of Prefix, a string or a []byte, stand for
	// all values that begin with it. From and To are then not allowed.
	Starting bool
	// From and To bound the columns behind the prefix: From ≤ columns < To.
	// They may leave out trailing columns. Nil is unbounded.
	From, To []any
	// Reverse delivers the rows in descending order.
	Reverse bool
	// Limit ends the scan after so many rows. 0 means no limit.
	Limit int
}

// Key makes the value list of a query: Key(1, "abc").
func Key(values ...any) []any { return values }

// plan returns the number of the index and the range in it.
func (q *Query) plan(t *txn.Table) (number int, r index.Range, err error) {
	if number, err = indexNamed(t, q.Index); err != nil {
		return 0, r, err
	}
	if q.Limit < 0 {
		return 0, r, invalidQuery(t, "limit %d is negative", q.Limit)
	}
	r, err = q.bounds(t, number)
	return number, r, err
}

// bounds encodes the range of a query.
func (q *Query) bounds(t *txn.Table, number int) (index.Range, error) {
	r := index.Range{Reverse: q.Reverse}
	if q.Starting {
		return q.starting(t, number, r)
	}
	lo, err := t.Layout.AppendKeyValues(nil, number, concat(q.Prefix, q.From), true)
	if err != nil {
		return r, err
	}
	hi, err := t.Layout.AppendKeyValues(nil, number, concat(q.Prefix, q.To), true)
	if err != nil {
		return r, err
	}
	if len(lo) > 0 {
		r.Lo = lo
	}
	if len(q.To) > 0 {
		r.Hi = hi
	} else if end, ok := keyenc.PrefixEnd(hi); ok {
		r.Hi = end
	}
	return r, nil
}

func (q *Query) starting(t *txn.Table, number int, r index.Range) (index.Range, error) {
	if len(q.Prefix) == 0 || len(q.From)+len(q.To) > 0 {
		return r, invalidQuery(t, "Starting goes with a Prefix and without From and To")
	}
	lo, err := t.Layout.AppendKeyStarting(nil, number, q.Prefix)
	if err != nil {
		return r, err
	}
	r.Lo = lo
	if end, ok := keyenc.PrefixEnd(lo); ok {
		r.Hi = end
	}
	return r, nil
}

func concat(prefix, rest []any) []any {
	return append(prefix[:len(prefix):len(prefix)], rest...)
}

func indexNamed(t *txn.Table, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	for i := range t.Schema.Indexes {
		if t.Schema.Indexes[i].Name == name {
			return i, nil
		}
	}
	return 0, invalidQuery(t, "there is no index %s", name)
}

func invalidQuery(t *txn.Table, format string, args ...any) error {
	return fmt.Errorf("%w: table %s: %s", fault.ErrInvalidQuery, t.Name(), fmt.Sprintf(format, args...))
}

// scan calls visit with the stored bytes of each row that q selects, until it
// returns false or an error.
func scan(tx *Tx, t *txn.Table, q Query, visit func(stored []byte) (bool, error)) error {
	number, r, err := q.plan(t)
	if err != nil {
		return tx.unlessEnded(t, err)
	}
	it := tx.inner.Scan(t, number, r, q.Limit)
	defer it.Close()
	for n := 0; (q.Limit == 0 || n < q.Limit) && it.Next(); n++ {
		more, err := visit(it.Row())
		if err != nil || !more {
			return err
		}
	}
	return it.Err()
}
