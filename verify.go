package rekindle

import (
	"context"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// CrossCheck compares every index with a scan of its table, in one snapshot,
// and returns the number of rows. A difference is ErrCorrupt and names the
// index. It reads every row; Close ends it early, with ErrClosed.
func (db *DB) CrossCheck(ctx context.Context) (rows int64, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.life, cancel)()
	rows, err = db.crossCheck(ctx)
	if err != nil && db.life.Err() != nil {
		err = fmt.Errorf("%w: %w", fault.ErrClosed, err)
	}
	return rows, err
}

func (db *DB) crossCheck(ctx context.Context) (rows int64, err error) {
	tx, err := db.manager.Begin(ctx, false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	for _, t := range db.catalog.tables() {
		n, err := tx.CrossCheck(ctx, t)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
