package txn

import (
	"github.com/rekindledb/rekindle/index"
)

// Iterator delivers the rows of a range of an index in order. It sees the
// snapshot of its transaction plus what the transaction has written, except
// rows that the transaction itself gave a new key in this index after the
// iterator was opened: those could be met again and again. It holds no lock
// and no pin between calls, so any statement of the transaction may run while
// it is open. It belongs to the transaction's goroutine. Close gives its buffers
// to the next one.
type Iterator struct {
	*scanBuffers
	tx     *Tx
	t      *Table
	number int
	r      index.Range
	more   bool
	opened uint64 // statements of the transaction when the iterator was opened
	filled uint64 // the same when rows was filled
	at     int
	err    error
}

// scanBuffers are what an iterator works with. Sessions keep them for reuse.
type scanBuffers struct {
	cursor index.Cursor
	batch  index.Batch
	rows   []byte
	found  []span
}

// span is the place of one row in scanBuffers.rows and of its entry in the
// batch.
type span struct{ from, to, entry int }

// keptBuffers bounds the memory that a session keeps between scans.
const (
	keptBuffers  = 4
	keptRowBytes = 1 << 20
)

func (s *session) takeBuffers() *scanBuffers {
	n := len(s.spare)
	if n == 0 {
		return &scanBuffers{}
	}
	b := s.spare[n-1]
	s.spare = s.spare[:n-1]
	b.cursor.Reset()
	b.batch.Reset()
	b.rows, b.found = b.rows[:0], b.found[:0]
	return b
}

func (s *session) giveBuffers(b *scanBuffers) {
	if len(s.spare) < keptBuffers && cap(b.rows) <= keptRowBytes {
		s.spare = append(s.spare, b)
	}
}

// Scan opens an iterator. Expect is how many rows the caller wants, 0 if it does
// not know. Errors come from Next through Err.
func (tx *Tx) Scan(t *Table, number int, r index.Range, expect int) *Iterator {
	r.Lo, r.Hi = searchable(r.Lo), searchable(r.Hi)
	it := &Iterator{tx: tx, t: t, number: number, r: r, more: true, at: -1}
	s, err := tx.enterTable(t)
	if err != nil {
		it.err = err
		return it
	}
	it.opened = s.statement.Load()
	it.scanBuffers = s.takeBuffers()
	it.batch.First = min(expect, index.FullFill)
	s.iterators.Add(1)
	s.leave()
	return it
}

// Close ends the iteration; the last row is no longer valid. Next then returns
// false. Closing again, or after the transaction has ended, does nothing.
func (it *Iterator) Close() {
	if it.scanBuffers == nil {
		return
	}
	if s, err := it.tx.enter(); err == nil {
		s.giveBuffers(it.scanBuffers)
		s.iterators.Add(-1)
		s.leave()
	}
	it.scanBuffers, it.more = nil, false
}

// Next moves to the next row. False means the end or an error.
func (it *Iterator) Next() bool {
	it.at++
	if it.err != nil || it.scanBuffers == nil || !it.current() {
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
	if it.filled == s.statement.Load() || it.at >= len(it.found) {
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
	it.filled = s.statement.Load()
	s.h.Pin()
	defer s.h.Unpin()
	m := &s.many
	if it.err = m.load(s, it.t, it.batch.Rows()[from:]); it.err != nil {
		return
	}
	for i := range m.rows {
		row, err := m.candidate(s, it.t, it.number, it.batch.Key(from+i), i, it.opened, passing)
		if err != nil {
			it.err = err
			return
		}
		if row != nil {
			start := len(it.rows)
			it.rows = append(it.rows, row...)
			it.found = append(it.found, span{start, len(it.rows), from + i})
		}
	}
}
