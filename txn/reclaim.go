package txn

import (
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/logstream"
)

// This file is what gc and checkpoints may ask of a chain. All of it is called
// with h pinned.

// Trim unlinks and retires the versions of a row that no snapshot sees: neither
// one of the given copy nor a later one. A row whose newest version is a tombstone
// that nobody can see beneath goes altogether. For each older version that
// stays, a snapshot that sees it is appended to kept, newest first. Only one
// goroutine trims.
func (m *Manager) Trim(h *epoch.Handle, t *Table, ordinal uint64, s *Snapshots, kept []uint64) ([]uint64, error) {
	head, err := t.Rows.Load(ordinal)
	if err != nil {
		return kept, err
	}
	for word := head; word != 0 && !word.IsLog(); {
		v := versionAt(m.Arena, word.Ref())
		if v.begin.Load() > s.horizon { // true of uncommitted ones too
			word = v.olderWord()
			continue
		}
		kept = m.thin(h, v, s, kept)
		if v.tombstone() && word == head && v.olderWord() == 0 {
			err = m.clear(h, t, ordinal, head)
		}
		return kept, err
	}
	return kept, nil
}

// thin takes out of the chain below v, the newest version at or below the
// horizon, what no snapshot sees. A version is seen from its own CTS up to that
// of the version which replaced it, whether that is still in the chain or not. A
// log address may be replaced by another one at any time, so the versions next
// to one stay where they are.
func (m *Manager) thin(h *epoch.Handle, v *version, s *Snapshots, kept []uint64) []uint64 {
	word, replaced := v.olderWord(), v.begin.Load()
	for word != 0 && s.anyBelow(replaced) {
		if word.IsLog() {
			return append(kept, s.registered[0])
		}
		u := versionAt(m.Arena, word.Ref())
		begin := u.begin.Load()
		if cts, seen := s.Within(begin, replaced); seen {
			kept = append(kept, cts)
			m.bridge(h, v, word)
			v = u
		}
		word, replaced = u.olderWord(), begin
	}
	m.bridge(h, v, 0)
	return kept
}

// bridge makes to, 0 or a word further down the chain, the word below v and
// retires the versions between. Who stands on one of them still gets to what is
// below it: that is retired later, and so under the same pin not freed.
func (m *Manager) bridge(h *epoch.Handle, v *version, to indirection.Word) {
	word := v.olderWord()
	if word == to {
		return
	}
	v.older.Store(uint64(to))
	for word != to && !word.IsLog() {
		u := versionAt(m.Arena, word.Ref())
		next := u.olderWord()
		h.Retire(word.Ref(), u.blockBytes())
		word = next
	}
}

// clear empties the slot of a deleted row.
func (m *Manager) clear(h *epoch.Handle, t *Table, ordinal uint64, head indirection.Word) error {
	swapped, err := t.Rows.CompareAndSwap(h.Shard(), ordinal, head, 0)
	if swapped {
		h.Retire(head.Ref(), versionAt(m.Arena, head.Ref()).blockBytes())
	}
	return err
}

// KeyUse says which versions of a row have a key.
type KeyUse struct {
	Held bool              // a version in memory has it, committed or in flight
	Cold logstream.Address // where the chain ends if that is in the log; not looked at

	// If Held: snapshots with From ≤ snapshot < To see the newest version that has
	// the key, perhaps with others. To is above every CTS unless a commit has
	// replaced that version.
	From, To uint64
}

// replaced reports that a commit, and not only a transaction in flight, took the
// key away from the row. Who does that reports the key as a suspect.
func (u *KeyUse) replaced() bool { return u.Held && u.To&uncommitted == 0 }

// KeyUse looks for a key in all versions of a row.
func (m *Manager) KeyUse(t *Table, ordinal uint64, index int, key []byte) (KeyUse, error) {
	word, err := t.Rows.Load(ordinal)
	if err != nil {
		return KeyUse{}, err
	}
	replaced := uncommitted
	for word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		begin := v.begin.Load()
		if !v.tombstone() && t.Layout.KeyMatches(index, v.payload(), key) {
			return KeyUse{Held: true, From: begin, To: replaced}, nil
		}
		word, replaced = v.olderWord(), begin
	}
	if word != 0 {
		return KeyUse{Cold: word.Address()}, nil
	}
	return KeyUse{}, nil
}

// AddressAt returns the log address of the version of a slot that a snapshot
// at cts sees, 0 if the row does not exist there.
func (m *Manager) AddressAt(word indirection.Word, cts uint64) logstream.Address {
	for word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		if v.begin.Load() <= cts {
			if v.tombstone() {
				return 0
			}
			return v.address()
		}
		word = v.olderWord()
	}
	if word == 0 {
		return 0
	}
	return word.Address()
}
