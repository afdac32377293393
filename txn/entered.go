package txn

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/rowid"
)

// enteredKeys notes the index entries of transactions that a checkpoint does
// not describe, while it captures the indexes. They get into its index files;
// if a crash then takes their transactions back, no log record will ever name
// them again, so the checkpoint has to remember them as suspects.
type enteredKeys struct {
	on   atomic.Bool
	mu   sync.Mutex
	list GarbageList
}

func (e *enteredKeys) add(row rowid.ID, index int, key []byte) {
	e.mu.Lock()
	e.list.Add(Garbage{Row: row, Kind: GarbageSuspect, Index: uint8(index), Key: key})
	e.mu.Unlock()
}

// NoteEntries begins to note entries, those of the transactions under way
// included. One caller at a time.
func (m *Manager) NoteEntries() {
	m.entered.on.Store(true)
	t := m.table.Load()
	for i := range t.len() {
		t.at(i).noteWrites()
	}
}

// noteWrites notes the entries of an open transaction. One that begins or
// writes from now on sees the switch itself.
func (s *session) noteWrites() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.writes {
		w := &s.writes[i]
		v := s.version(w)
		if v.tombstone() {
			continue
		}
		for mask := w.keyMask; mask != 0; mask &= mask - 1 {
			index := bits.TrailingZeros64(mask)
			s.m.entered.add(w.table.row(w.ordinal), index, w.table.Layout.AppendKey(nil, index, v.payload()))
		}
	}
}

// ForgetEntries ends the noting.
func (m *Manager) ForgetEntries() { m.takeEntries() }

func (m *Manager) takeEntries() GarbageList {
	m.entered.on.Store(false)
	m.entered.mu.Lock()
	defer m.entered.mu.Unlock()
	list := m.entered.list
	m.entered.list = GarbageList{}
	return list
}

// EntriesAtRisk ends the noting and calls f with those entries that a crash
// could leave dangling now: all but the ones whose row has a durable version
// with that key, because its log record will be replayed. Keys are valid during
// the call.
func (m *Manager) EntriesAtRisk(f func(Garbage)) error {
	list := m.takeEntries()

	s := m.acquire() // for its epoch handle
	defer s.release()
	durable := m.Log.Durable()
	var failed error
	list.All(func(g Garbage) {
		t := m.Find(g.Row.Table())
		if t == nil || failed != nil {
			return
		}
		s.h.Pin()
		safe, err := m.durablyHolds(t, g, durable)
		s.h.Unpin()
		if failed = err; !safe {
			f(g)
		}
	})
	return failed
}

// durablyHolds reports whether the newest durable version of a row has the key.
func (m *Manager) durablyHolds(t *Table, g Garbage, durable uint64) (bool, error) {
	word, err := t.Rows.Load(g.Row.Ordinal())
	for err == nil && word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		if v.begin.Load() <= durable {
			return !v.tombstone() && t.Layout.KeyMatches(int(g.Index), v.payload(), g.Key), nil
		}
		word = v.olderWord()
	}
	return false, err
}
