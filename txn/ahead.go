package txn

import (
	"cmp"
	"slices"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/logstream"
)

// ahead reads the cold rows of a batch before any row of it is looked at: in the
// order of the log, under one break of the pin, and where the records lie close
// together many with one read. What it fails to read, or does not get to, is read
// again one by one, where errors are told from rows that have moved.
type ahead struct {
	rows   []aheadRow // ascending by place
	bytes  []byte
	window *logstream.Reader // nil when records lie apart; of one transaction, for it can be large
}

// aheadRow is a record whose payload is bytes[from:to].
type aheadRow struct {
	place    int // in the batch
	word     indirection.Word
	from, to int
}

const (
	// closeRecords bytes a record, at most, is how far the records of a batch may
	// be apart for a read of all that lies between them to be cheaper: a read costs
	// as much as copying a few KiB.
	closeRecords = 4 << 10
	// aheadBytes of payloads are read ahead at most.
	aheadBytes = 256 << 10
)

// read fills a with the cold rows among those in m, which loses its pin
// meanwhile.
func (a *ahead) read(s *session, t *Table, m *many) error {
	a.rows, a.bytes = a.rows[:0], a.bytes[:0]
	for i, word := range m.words {
		if word.IsLog() {
			a.rows = append(a.rows, aheadRow{place: i, word: word})
		}
	}
	if len(a.rows) < 2 {
		a.rows = a.rows[:0]
		return nil
	}
	slices.SortFunc(a.rows, func(x, y aheadRow) int { return cmp.Compare(x.word.Address().Position(), y.word.Address().Position()) })
	s.h.Unpin()
	a.readRows(s, t, m)
	s.h.Pin()
	slices.SortFunc(a.rows, func(x, y aheadRow) int { return cmp.Compare(x.place, y.place) })
	return m.loadWords(t, m.rows)
}

// readRows reads the records of a.rows and keeps those that were found.
func (a *ahead) readRows(s *session, t *Table, m *many) {
	if !a.close() {
		a.window = nil
	} else if a.window == nil {
		a.window = logstream.NewReader(s.m.Log)
	}
	found := a.rows[:0]
	for _, r := range a.rows {
		if len(a.bytes) > aheadBytes {
			break
		}
		record, err := a.record(s, r.word.Address())
		s.m.countCold()
		if err != nil || record.Row != m.rows[r.place] || t.Layout.Check(record.Payload) != nil {
			continue
		}
		r.from = len(a.bytes)
		a.bytes = append(a.bytes, record.Payload...)
		r.to = len(a.bytes)
		found = append(found, r)
	}
	a.rows = found
}

// close reports whether the records lie close together.
func (a *ahead) close() bool {
	first, last := a.rows[0].word.Address(), a.rows[len(a.rows)-1].word.Address()
	return first.Stream() == last.Stream() && uint64(last.Position()-first.Position()) <= uint64(len(a.rows)*closeRecords)
}

func (a *ahead) record(s *session, at logstream.Address) (record logstream.Record, err error) {
	if a.window != nil {
		return a.window.Read(at)
	}
	record, s.cold, err = s.m.Log.ReadAt(at, s.cold)
	return record, err
}

// row returns the payload of the record at a log address that the slot of a row
// of the batch holds, if it was read.
func (a *ahead) row(place int, word indirection.Word) ([]byte, bool) {
	i, found := slices.BinarySearchFunc(a.rows, place, func(r aheadRow, place int) int { return cmp.Compare(r.place, place) })
	if !found || a.rows[i].word != word {
		return nil, false
	}
	return a.bytes[a.rows[i].from:a.rows[i].to], true
}

// rest gives back what a session at rest should not hold.
func (a *ahead) rest() {
	a.window = nil
	if cap(a.bytes) > keptBytes {
		a.bytes = nil
	}
}
