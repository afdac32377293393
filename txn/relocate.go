package txn

import (
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/logstream"
)

// This file is what the compaction of the log may ask of a chain and do to it.
// All of it is called with h pinned.

// NeedsRecord reports whether the newest committed version of a row is the one
// whose log record is at an address.
func (m *Manager) NeedsRecord(t *Table, ordinal uint64, at logstream.Address) (bool, error) {
	word, err := t.Rows.Load(ordinal)
	if err != nil {
		return false, err
	}
	for word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		if v.begin.Load()&uncommitted == 0 {
			return v.address() == at && !v.tombstone(), nil
		}
		word = v.olderWord()
	}
	return word != 0 && word.Address() == at, nil
}

// PrepareRelocation is NeedsRecord and makes sure that a Relocate of the row
// will need no memory, so that it cannot fail.
func (m *Manager) PrepareRelocation(h *epoch.Handle, t *Table, ordinal uint64, from logstream.Address) (bool, error) {
	word := indirection.FromAddress(from)
	swapped, err := t.Rows.CompareAndSwap(h.Shard(), ordinal, word, word)
	if swapped || err != nil {
		return swapped, err
	}
	return m.NeedsRecord(t, ordinal, from) // a version in memory: so is the slot
}

// Relocate puts the log address to in the place of from, wherever the chain of a
// row has it: in the slot or in the header of a version. There is a durable
// relocation from the one to the other. If no version is at from any more,
// nothing happens, as at a replay.
func (m *Manager) Relocate(h *epoch.Handle, t *Table, ordinal uint64, from, to logstream.Address) error {
	for {
		head, err := t.Rows.Load(ordinal)
		if err != nil {
			return err
		}
		v := m.versionFrom(head, from)
		switch {
		case v != nil:
			// Whoever freezes this version may have read the old address before.
			// If it gets into the slot, then before the next look at it, or it is
			// corrected by who put it there.
			v.log.CompareAndSwap(uint64(from), uint64(to))
		case head == indirection.FromAddress(from):
			if _, err := t.Rows.CompareAndSwap(h.Shard(), ordinal, head, indirection.FromAddress(to)); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// versionFrom returns the version in a chain whose record is at an address, nil
// if there is none in memory. No uncommitted one is: what it has in that field
// is no address yet, or that of a newer record.
func (m *Manager) versionFrom(word indirection.Word, at logstream.Address) *version {
	for word != 0 && !word.IsLog() {
		v := versionAt(m.Arena, word.Ref())
		if v.address() == at {
			return v
		}
		word = v.olderWord()
	}
	return nil
}
