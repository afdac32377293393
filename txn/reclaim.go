package txn

import (
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/logstream"
)

// This file is what gc and checkpoints may ask of a chain. All of it is called
// with h pinned.

// Trim unlinks and retires the versions of a row that no snapshot at or above
// the watermark can see. A row whose newest version is a tombstone at or below
// it goes altogether. Only one goroutine trims.
func (m *Manager) Trim(h *epoch.Handle, t *Table, ordinal, watermark uint64) error {
	head, err := t.Rows.Load(ordinal)
	if err != nil {
		return err
	}
	for word := head; word != 0 && !word.IsLog(); {
		v := versionAt(m.Arena, word.Ref())
		if v.begin.Load() > watermark { // true of uncommitted ones too
			word = v.olderWord()
			continue
		}
		m.retireChain(h, indirection.Word(v.older.Swap(0)))
		if v.tombstone() && word == head {
			return m.clear(h, t, ordinal, head)
		}
		return nil
	}
	return nil
}

// clear empties the slot of a deleted row.
func (m *Manager) clear(h *epoch.Handle, t *Table, ordinal uint64, head indirection.Word) error {
	swapped, err := t.Rows.CompareAndSwap(h.Shard(), ordinal, head, 0)
	if swapped {
		h.Retire(head.Ref(), versionAt(m.Arena, head.Ref()).blockBytes())
	}
	return err
}

func (m *Manager) retireChain(h *epoch.Handle, word indirection.Word) {
	for word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		next := v.olderWord()
		h.Retire(word.Ref(), v.blockBytes())
		word = next
	}
}

// HoldsKey reports whether any version of a row, committed or in flight, has
// the key in an index. If the chain ends in the log, that address is returned
// too and the answer is about the versions in memory only.
func (m *Manager) HoldsKey(t *Table, ordinal uint64, index int, key []byte) (holds bool, cold logstream.Address, err error) {
	word, err := t.Rows.Load(ordinal)
	if err != nil {
		return false, 0, err
	}
	for word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		if !v.tombstone() && t.Layout.KeyMatches(index, v.payload(), key) {
			return true, 0, nil
		}
		word = v.olderWord()
	}
	if word != 0 {
		cold = word.Address()
	}
	return false, cold, nil
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
