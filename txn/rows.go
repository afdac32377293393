package txn

import (
	"context"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/rowid"
)

// rowsBatch slots are looked at between two looks at whether tx, or ctx, has
// ended.
const rowsBatch = 1024

// Rows calls f with every row of a table that tx sees, in the order of the
// indirection array and without any index: for tools, and for checking indexes.
// The payload is valid during the call, in which tx must not be used.
func (tx *Tx) Rows(ctx context.Context, t *Table, f func(row rowid.ID, payload []byte) error) error {
	return t.eachSlot(ctx, func(ordinals []uint64) error { return tx.visit(t, ordinals, f) })
}

// eachSlot calls f with the ordinals of all slots that are not empty, some at a
// time and in ascending order. The slice is overwritten after the call.
func (t *Table) eachSlot(ctx context.Context, f func(ordinals []uint64) error) error {
	var batch []uint64
	for next := uint64(1); ; {
		batch = batch[:0]
		err := t.Rows.Scan(next, func(ordinal uint64, _ indirection.Word) bool {
			batch = append(batch, ordinal)
			next = ordinal + 1
			return len(batch) < rowsBatch
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := f(batch); err != nil || len(batch) < rowsBatch {
			return err
		}
	}
}

func (tx *Tx) visit(t *Table, ordinals []uint64, f func(rowid.ID, []byte) error) error {
	s, err := tx.enter()
	if err != nil {
		return err
	}
	defer s.leave()
	for _, ordinal := range ordinals {
		var found bool
		s.h.Pin()
		s.row, found, err = s.fetch(t, ordinal, s.row[:0], passing)
		s.h.Unpin()
		if err == nil && found {
			err = f(t.row(ordinal), s.row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
