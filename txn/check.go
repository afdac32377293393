package txn

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// CrossCheck compares each index of a table with a scan of all its rows, as
// this transaction sees them: the set of (key, row) must be the same. It
// returns the number of rows. A difference is ErrCorrupt.
func (tx *Tx) CrossCheck(t *Table) (rows int64, err error) {
	byScan := make([]entrySet, len(t.Indexes))
	if rows, err = tx.entriesOfRows(t, byScan); err != nil {
		return rows, err
	}
	for number := range t.Indexes {
		byIndex, err := tx.entriesOfIndex(t, number)
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

// checkBatch rows are looked at under one pin.
const checkBatch = 1024

// entriesOfRows derives the entries of every index from the visible rows.
func (tx *Tx) entriesOfRows(t *Table, sets []entrySet) (rows int64, err error) {
	var batch []uint64
	for from := uint64(1); ; from = batch[len(batch)-1] + 1 {
		batch = batch[:0]
		err := t.Rows.Scan(from, func(ordinal uint64, _ indirection.Word) bool {
			batch = append(batch, ordinal)
			return len(batch) < checkBatch
		})
		if err != nil {
			return rows, err
		}
		n, err := tx.addRows(t, batch, sets)
		rows += n
		if err != nil || len(batch) < checkBatch {
			return rows, err
		}
	}
}

func (tx *Tx) addRows(t *Table, ordinals []uint64, sets []entrySet) (rows int64, err error) {
	s, err := tx.enter()
	if err != nil {
		return 0, err
	}
	defer s.leave()
	s.h.Pin()
	defer s.h.Unpin()
	for _, ordinal := range ordinals {
		var found bool
		if s.row, found, err = s.fetch(t, ordinal, s.row[:0]); err != nil {
			return rows, err
		}
		if !found {
			continue
		}
		rows++
		for number := range sets {
			s.key = t.Layout.AppendKey(s.key[:0], number, s.row)
			sets[number].add(s.key, t.row(ordinal))
		}
	}
	return rows, nil
}

func (tx *Tx) entriesOfIndex(t *Table, number int) (set entrySet, err error) {
	it := tx.Scan(t, number, index.Range{})
	for it.Next() {
		entry := it.found[it.at].entry
		set.add(it.batch.Key(entry), it.batch.Row(entry))
	}
	return set, it.Err()
}
