package txn

import (
	"sync/atomic"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Freeze gives back the memory of a row that has not been used since the last
// call for it, by putting the log address of its newest version, which word
// refers to, into the slot. It returns the bytes retired: 0 if the row was used,
// or if something else than that version may yet be needed. It is called by the
// goroutine that trims, with h pinned, and watermark is what Watermark returned.
func (m *Manager) Freeze(h *epoch.Handle, t *Table, ordinal uint64, word indirection.Word, watermark uint64) (bytes int, err error) {
	v := versionAt(m.Arena, word.Ref())
	if v.begin.Load() > watermark || v.tombstone() || v.untouch() { // uncommitted ones are above any watermark
		return 0, nil
	}
	cold := indirection.FromAddress(v.address())
	swapped, err := t.Rows.CompareAndSwap(h.Shard(), ordinal, word, cold)
	if !swapped || err != nil {
		return 0, err
	}
	if moved := indirection.FromAddress(v.address()); moved != cold {
		// Relocate has changed the header, and may have looked at the slot too
		// early. Whoever has changed the slot since has not brought back the old one.
		if _, err := t.Rows.CompareAndSwap(h.Shard(), ordinal, cold, moved); err != nil {
			return 0, err
		}
	}
	for word != 0 && !word.IsLog() { // and all that is below it
		v := versionAt(m.Arena, word.Ref())
		next := v.olderWord()
		bytes += v.blockBytes()
		h.Retire(word.Ref(), v.blockBytes())
		word = next
	}
	m.frozen.Add(1)
	return bytes, nil
}

// freezes reports whether rows leave memory when it is short.
func (m *Manager) freezes() bool { return m.Budget > 0 }

// SetRoom says whether there is room in memory for rows that are read from the log,
// and whether there is so much that it need not be saved for those in demand.
func (m *Manager) SetRoom(some, much bool) {
	m.room.Store(some)
	m.muchRoom.Store(much)
}

// countCold counts a record that was read.
func (m *Manager) countCold() {
	if m.coldReads.Add(1)%coldReadsNoticed == 0 && m.freezes() {
		m.ColdReads()
	}
}

// coldReadsNoticed is how many cold reads Config.ColdReads is called after.
const coldReadsNoticed = 1 << 12

// admits reports whether a row that was read from the log should come into memory.
func (m *Manager) admits(row rowid.ID, purpose use) bool {
	switch {
	case !m.freezes():
		return true
	case purpose == passing || !m.room.Load():
		return false
	}
	return m.muchRoom.Load() || m.recent.again(row)
}

// recentReads remembers which rows were lately read from the log: a table of
// hashes in which a newer row takes the place of an older one. So it forgets the
// faster the more different rows are read, and a row wins a place in memory if it
// is read again before about as many others as the table has places.
type recentReads struct {
	places []atomic.Uint32
}

const (
	minRecent = 1 << 10
	maxRecent = 1 << 20
	// recentShare bytes of budget get a place: about as many as rows find room.
	recentShare = 256
)

func (r *recentReads) init(budget int64) {
	n := minRecent
	for n < maxRecent && int64(n)*recentShare < budget {
		n *= 2
	}
	r.places = make([]atomic.Uint32, n)
}

// again notes a read and reports whether the one before is remembered.
func (r *recentReads) again(row rowid.ID) bool {
	h := uint64(row) * 0x9E3779B97F4A7C15
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	mark := uint32(h>>32) | 1 // not 0, which is an empty place
	place := &r.places[h%uint64(len(r.places))]
	if place.Load() == mark {
		return true
	}
	place.Store(mark)
	return false
}
