package rekindle

import (
	"context"
)

// CrossCheck compares every index with a scan of its table, in one snapshot,
// and returns the number of rows. A difference is ErrCorrupt and names the
// index. It reads every row.
func (db *DB) CrossCheck(ctx context.Context) (rows int64, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	tx, err := db.manager.Begin(ctx, false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	for _, t := range db.catalog.tables() {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		n, err := tx.CrossCheck(t)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
