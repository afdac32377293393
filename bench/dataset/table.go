package dataset

import (
	"context"
	"fmt"

	"github.com/rekindledb/rekindle"
)

// Table is the open table. It is safe for concurrent use.
type Table interface {
	// Session returns what one goroutine works with.
	Session() Session
}

// Session works in transactions of its caller. Rows are named by their keys.
type Session interface {
	// Get reads a row and checks that it is the right one.
	Get(tx *rekindle.Tx, key uint64) error
	Insert(tx *rekindle.Tx, key uint64) error
	// Update gives the row another value, one for each version.
	Update(tx *rekindle.Tx, key, version uint64) error
	Delete(tx *rekindle.Tx, key uint64) error
}

// Open opens or creates the table with a number of indexes, 1 to MaxIndexes,
// the primary key included.
func Open(ctx context.Context, db *rekindle.DB, indexes int) (Table, error) {
	switch indexes {
	case 1:
		return open[row1](ctx, db)
	case 2:
		return open[row2](ctx, db)
	case 3:
		return open[row3](ctx, db)
	case 4:
		return open[row4](ctx, db)
	}
	return nil, fmt.Errorf("indexes must be 1 to %d, not %d", MaxIndexes, indexes)
}

func open[T stored](ctx context.Context, db *rekindle.DB) (Table, error) {
	rows, err := rekindle.OpenTable[T](ctx, db, "rows")
	if err != nil {
		return nil, err
	}
	return table[T]{rows}, nil
}

type table[T stored] struct{ rows *rekindle.Table[T] }

func (t table[T]) Session() Session { return &session[T]{rows: t.rows} }

// session keeps its row so that it does not allocate one for each call.
type session[T stored] struct {
	rows   *rekindle.Table[T]
	row    row
	stored T
}

func (s *session[T]) Get(tx *rekindle.Tx, key uint64) error {
	s.row.Key = key
	s.stored = T(s.row)
	if err := s.rows.Get(tx, &s.stored); err != nil {
		return err
	}
	s.row = row(s.stored)
	return s.row.check(key)
}

func (s *session[T]) Insert(tx *rekindle.Tx, key uint64) error {
	s.fill(key, 0)
	return s.rows.Insert(tx, &s.stored)
}

func (s *session[T]) Update(tx *rekindle.Tx, key, version uint64) error {
	s.fill(key, version)
	return s.rows.Update(tx, &s.stored)
}

func (s *session[T]) Delete(tx *rekindle.Tx, key uint64) error {
	s.row.Key = key
	s.stored = T(s.row)
	return s.rows.Delete(tx, &s.stored)
}

func (s *session[T]) fill(key, version uint64) {
	s.row.fill(key, version)
	s.stored = T(s.row)
}
