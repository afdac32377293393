package txn

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/rowid"
)

// manyKeys keys are looked up under one pin.
const manyKeys = 64

// many holds what GetMany needs for one pin's worth of keys.
type many struct {
	rows  []rowid.ID // candidates of all keys
	ends  []int      // where those of each key end
	words []indirection.Word
}

// GetMany looks up many keys of a unique index together, so that their cache
// misses overlap, and calls f with the row of each key that has one. The row is
// valid during the call, in which tx must not be used.
func (tx *Tx) GetMany(t *Table, number int, keys [][]byte, f func(i int, row []byte) error) error {
	s, err := tx.enter()
	if err != nil {
		return err
	}
	defer s.leave()
	for from := 0; from < len(keys); from += manyKeys {
		batch := keys[from:min(from+manyKeys, len(keys))]
		if err := s.getMany(t, number, batch, func(i int, row []byte) error { return f(from+i, row) }); err != nil {
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
	if err := m.loadWords(t); err != nil {
		return err
	}
	s.touch(m.words)
	for i, key := range keys {
		from := 0
		if i > 0 {
			from = m.ends[i-1]
		}
		for c := from; c < m.ends[i]; c++ {
			row, found, err := s.candidate(t, number, key, m.rows[c].Ordinal(), m.words[c])
			if found && err == nil {
				err = f(i, row)
			}
			if err != nil {
				return err
			}
			if found {
				break
			}
		}
	}
	return nil
}

// lookup finds the candidates of all keys.
func (m *many) lookup(s *session, ix index.Index, keys [][]byte) (err error) {
	m.rows, m.ends = m.rows[:0], m.ends[:0]
	if b, ok := ix.(index.BatchLooker); ok {
		m.rows, m.ends, err = b.LookupBatch(s.h, keys, m.rows, m.ends)
		return err
	}
	for _, key := range keys {
		if m.rows, err = ix.Lookup(s.h, key, m.rows); err != nil {
			return err
		}
		m.ends = append(m.ends, len(m.rows))
	}
	return nil
}

func (m *many) loadWords(t *Table) error {
	m.words = m.words[:0]
	for _, row := range m.rows {
		word, err := t.Rows.Load(row.Ordinal())
		if err != nil {
			return err
		}
		m.words = append(m.words, word)
	}
	return nil
}

// touch asks for the first line of every version before any is needed.
func (s *session) touch(words []indirection.Word) {
	var sum uint64
	for _, word := range words {
		if word != 0 && !word.IsLog() {
			sum += versionAt(s.m.Arena, word.Ref()).begin.Load()
		}
	}
	s.touched = sum
}

// candidate returns the payload that s sees in a slot, if it has the key. Word
// is what the slot held; a row in the log is fetched, which loads it anew.
func (s *session) candidate(t *Table, number int, key []byte, ordinal uint64, word indirection.Word) (row []byte, found bool, err error) {
	switch seen := s.visible(word); {
	case seen == 0:
		return nil, false, nil
	case seen.IsLog():
		s.row, found, err = s.fetch(t, ordinal, s.row[:0])
		row = s.row
	default:
		row, found = versionAt(s.m.Arena, seen.Ref()).payload(), true
	}
	return row, found && err == nil && t.Layout.KeyMatches(number, row, key), err
}
