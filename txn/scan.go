package txn

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
)

// Iterator delivers the rows of a range of an index in order. It sees the
// snapshot of its transaction plus what the transaction has written, except
// rows that the transaction itself gave a new key in this index after the
// iterator was opened: those could be met again and again. It holds no lock
// and no pin between calls, so any statement of the transaction may run while
// it is open. It belongs to the transaction's goroutine and needs no closing.
type Iterator struct {
	tx     *Tx
	t      *Table
	number int
	r      index.Range
	cursor index.Cursor
	batch  index.Batch
	more   bool
	opened uint64 // statements of the transaction when the iterator was opened
	filled uint64 // the same when rows was filled

	words []indirection.Word
	rows  []byte
	found []span
	at    int
	err   error
}

// span is the place of one row in Iterator.rows and of its entry in the batch.
type span struct{ from, to, entry int }

// Scan opens an iterator. Errors come from Next through Err.
func (tx *Tx) Scan(t *Table, number int, r index.Range) *Iterator {
	it := &Iterator{tx: tx, t: t, number: number, r: r, more: true, at: -1}
	s, err := tx.enter()
	if err != nil {
		it.err = err
		return it
	}
	it.opened = s.statement
	s.leave()
	return it
}

// Next moves to the next row. False means the end or an error.
func (it *Iterator) Next() bool {
	it.at++
	if it.err != nil || !it.current() {
		return false
	}
	for it.at >= len(it.found) {
		if !it.more || !it.fill() {
			return false
		}
	}
	return true
}

// Row returns the row that Next moved to, valid until the next call of Next.
func (it *Iterator) Row() []byte {
	f := it.found[it.at]
	return it.rows[f.from:f.to:f.to]
}

// Err returns what ended the iteration early.
func (it *Iterator) Err() error { return it.err }

// current makes sure that the transaction is still there and that the rows
// waiting in the iterator still stand: a statement since the last fill may have
// changed them, so they are resolved again.
func (it *Iterator) current() bool {
	s := it.tx.s
	if s.state.Load() != it.tx.generation<<generationAt|stateActive || s.m.closed.Load() {
		it.err = it.tx.refusal()
		return false
	}
	if it.filled == s.statement || it.at >= len(it.found) {
		return true
	}
	s, it.err = it.tx.enter()
	if it.err != nil {
		return false
	}
	it.resolve(s, it.found[it.at].entry)
	s.leave()
	return it.err == nil
}

// fill gets the next batch of entries and resolves it.
func (it *Iterator) fill() bool {
	s, err := it.tx.enter()
	if err != nil {
		it.err = err
		return false
	}
	s.h.Pin()
	it.more, it.err = it.t.Indexes[it.number].Scan(s.h, it.r, &it.cursor, &it.batch)
	s.h.Unpin()
	if it.err == nil {
		it.resolve(s, 0)
	}
	s.leave()
	return it.err == nil
}

// resolve reads the rows behind the entries of the batch from the given one
// on. The slots are loaded first and the versions touched next, so that their
// cache misses overlap.
func (it *Iterator) resolve(s *session, from int) {
	it.rows, it.found, it.at = it.rows[:0], it.found[:0], 0
	it.filled = s.statement
	s.h.Pin()
	defer s.h.Unpin()
	if it.err = it.loadWords(from); it.err != nil {
		return
	}
	s.touch(it.words)
	for i, word := range it.words {
		entry := from + i
		start := len(it.rows)
		found, err := it.appendRow(s, word, entry)
		if err != nil {
			it.err = err
			return
		}
		if found {
			it.found = append(it.found, span{start, len(it.rows), entry})
		} else {
			it.rows = it.rows[:start]
		}
	}
}

func (it *Iterator) loadWords(from int) error {
	it.words = it.words[:0]
	for _, row := range it.batch.Rows()[from:] {
		word, err := it.t.Rows.Load(row.Ordinal())
		if err != nil {
			return err
		}
		it.words = append(it.words, word)
	}
	return nil
}

// appendRow appends the row of an entry to it.rows if s sees it under the
// entry's key. Word is what its slot held under the present pin; once a read
// from the log has ended that pin, slots are loaded anew.
func (it *Iterator) appendRow(s *session, word indirection.Word, entry int) (found bool, err error) {
	start := len(it.rows)
	if seen := s.visible(word); seen == 0 {
		return false, nil
	} else if !seen.IsLog() {
		v := versionAt(s.m.Arena, seen.Ref())
		if s.movedSince(v, it.number, it.opened) {
			return false, nil
		}
		it.rows = append(it.rows, v.payload()...)
	} else {
		it.rows, found, err = s.fetch(it.t, it.batch.Row(entry).Ordinal(), it.rows)
		if err != nil || !found {
			return false, err
		}
		if err := it.loadWordsBehind(entry); err != nil {
			return false, err
		}
	}
	return it.t.Layout.KeyMatches(it.number, it.rows[start:], it.batch.Key(entry)), nil
}

// loadWordsBehind loads the slots of all later entries again.
func (it *Iterator) loadWordsBehind(entry int) error {
	first := it.batch.Len() - len(it.words)
	for e := entry + 1; e < it.batch.Len(); e++ {
		word, err := it.t.Rows.Load(it.batch.Row(e).Ordinal())
		if err != nil {
			return err
		}
		it.words[e-first] = word
	}
	return nil
}
