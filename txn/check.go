package txn

import (
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// CrossCheck compares each index of a table with a scan of all its rows, as
// this transaction sees them: the set of (key, row) must be the same. It
// returns the number of rows. A difference is ErrCorrupt.
func (tx *Tx) CrossCheck(ctx context.Context, t *Table) (rows int64, err error) {
	byScan := make([]entrySet, len(t.Indexes))
	if rows, err = tx.entriesOfRows(ctx, t, byScan); err != nil {
		return rows, err
	}
	for number := range t.Indexes {
		byIndex, err := tx.entriesOfIndex(ctx, t, number)
		if err != nil {
			return rows, err
		}
		if byIndex != byScan[number] {
			return rows, fmt.Errorf("%w: table %s, index %s: %d entries for %d rows, or others than theirs",
				fault.ErrCorrupt, t.Name(), t.Schema.Indexes[number].Name, byIndex.count, byScan[number].count)
		}
	}
	return rows, nil
}

// entrySet is a fingerprint of a set of (key, row) that does not depend on the
// order in which they are added.
type entrySet struct {
	count int64
	sum   uint64
}

func (e *entrySet) add(key []byte, row rowid.ID) {
	e.count++
	h := xxhash.Sum64(key) ^ uint64(row)*0x9E3779B97F4A7C15
	h ^= h >> 29
	e.sum += h * 0xBF58476D1CE4E5B9
}

// entriesOfRows derives the entries of every index from the visible rows.
func (tx *Tx) entriesOfRows(ctx context.Context, t *Table, sets []entrySet) (rows int64, err error) {
	var key []byte
	err = tx.Rows(ctx, t, func(row rowid.ID, payload []byte) error {
		rows++
		for number := range sets {
			key = t.Layout.AppendKey(key[:0], number, payload)
			sets[number].add(key, row)
		}
		return nil
	})
	return rows, err
}

func (tx *Tx) entriesOfIndex(ctx context.Context, t *Table, number int) (set entrySet, err error) {
	it := tx.Scan(t, number, index.Range{}, index.FullFill)
	defer it.Close()
	for it.Next() {
		entry := it.found[it.at].entry
		set.add(it.batch.Key(entry), it.batch.Row(entry))
		if set.count%rowsBatch == 0 && ctx.Err() != nil {
			return set, ctx.Err()
		}
	}
	return set, it.Err()
}
