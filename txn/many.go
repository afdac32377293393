package txn

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/rowid"
)

// manyKeys keys are looked up under one pin.
const manyKeys = 64

// many holds the candidates that are resolved under one pin.
type many struct {
	rows  []rowid.ID         // of somebody else
	words []indirection.Word // what their slots hold

	ahead ahead // records of the cold ones

	looked []rowid.ID // in GetMany: the candidates of all keys
	ends   []int      // and where those of each key end
}

// GetMany looks up many keys of a unique index together, so that their cache
// misses overlap, and calls f with the row of each key that has one. The row is
// valid while f runs. keys is overwritten.
func (c *Call) GetMany(t *Table, number int, keys [][]byte, f func(i int, row []byte) error) error {
	for from := 0; from < len(keys); from += manyKeys {
		batch := keys[from:min(from+manyKeys, len(keys))]
		if err := c.s.getMany(t, number, batch, func(i int, row []byte) error { return f(from+i, row) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) getMany(t *Table, number int, keys [][]byte, f func(i int, row []byte) error) error {
	s.h.Pin()
	defer s.h.Unpin()
	m := &s.many
	if err := m.lookup(s, t.Indexes[number], keys); err != nil {
		return err
	}
	if err := m.load(s, t, m.looked); err != nil {
		return err
	}
	c := 0
	for i, key := range keys {
		found := false
		for ; c < m.ends[i]; c++ {
			if found { // at most one candidate has the key
				continue
			}
			row, err := m.candidate(s, t, number, key, c, neverMoved, wanted)
			if err != nil {
				return err
			}
			if found = row != nil; found {
				if err := f(i, row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lookup finds the candidates of all keys.
func (m *many) lookup(s *session, ix index.Index, keys [][]byte) (err error) {
	m.looked, m.ends = m.looked[:0], m.ends[:0]
	for i := range keys {
		keys[i] = searchable(keys[i])
	}
	m.looked, m.ends, err = index.LookupMany(ix, s.h, keys, m.looked, m.ends)
	return err
}

// load brings the slots and the versions of the given rows to hand, and reads those
// that are in the log.
func (m *many) load(s *session, t *Table, rows []rowid.ID) error {
	err := m.loadWords(t, rows)
	if err == nil {
		err = m.ahead.read(s, t, m)
	}
	s.touch(m.words)
	return err
}

// loadWords loads the slots of the given rows, one after the other so that the
// cache misses overlap.
func (m *many) loadWords(t *Table, rows []rowid.ID) error {
	m.rows, m.words = rows, m.words[:0]
	for _, row := range rows {
		word, err := t.Rows.Load(row.Ordinal())
		if err != nil {
			return err
		}
		m.words = append(m.words, word)
	}
	return nil
}

// touch asks for the lines of every version before any is needed: first for all
// headers, then, with the sizes known, for the rest of the payloads.
func (s *session) touch(words []indirection.Word) {
	var sum uint64
	for _, word := range words {
		if word != 0 && !word.IsLog() {
			sum += versionAt(s.m.Arena, word.Ref()).begin.Load()
		}
	}
	for _, word := range words {
		if word != 0 && !word.IsLog() {
			sum += uint64(touchLines(versionAt(s.m.Arena, word.Ref()).payload()))
		}
	}
	s.touched = sum
}

const (
	lineBytes    = 64
	touchedLines = 8 // the hardware prefetches what follows these
)

func touchLines(b []byte) (sum byte) {
	for at := lineBytes - headerBytes; at < min(len(b), touchedLines*lineBytes); at += lineBytes {
		sum += b[at]
	}
	return sum
}

// neverMoved is a statement that no statement comes after.
const neverMoved = ^uint64(0)

// candidate returns the payload that s sees in the i-th of the loaded slots if
// it has the key, else nil, also if this transaction gave the row its key after
// the given statement. It is valid until the next call.
func (m *many) candidate(s *session, t *Table, number int, key []byte, i int, opened uint64, purpose use) ([]byte, error) {
	var row []byte
	switch seen := s.visible(m.words[i]); {
	case seen == 0:
		return nil, nil
	case seen.IsLog():
		var err error
		if row, err = m.cold(s, t, i, seen, purpose); row == nil || err != nil {
			return nil, err
		}
	default:
		v := versionAt(s.m.Arena, seen.Ref())
		if s.movedSince(v, number, opened) {
			return nil, nil
		}
		s.note(v, purpose)
		row = v.payload()
	}
	if !t.Layout.KeyMatches(number, row, key) {
		return nil, nil
	}
	return row, nil
}

// cold returns the row that s sees in the i-th slot, which holds a log address, nil
// if there is none.
func (m *many) cold(s *session, t *Table, i int, word indirection.Word, purpose use) ([]byte, error) {
	ordinal := m.rows[i].Ordinal()
	if row, found := m.ahead.row(i, word); found {
		return row, s.keep(t, ordinal, word, row, purpose)
	}
	var found bool
	var err error
	s.row, found, err = s.fetch(t, ordinal, s.row[:0], purpose)
	if err == nil {
		err = m.loadWords(t, m.rows) // the pin under which they were loaded has ended
	}
	if err != nil || !found {
		return nil, err
	}
	return s.row, nil
}
