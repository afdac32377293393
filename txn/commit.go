package txn

import (
	"context"
	"math/bits"

	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/logstream"
)

// Commit makes the transaction's changes visible and, as its durability says,
// durable. With an error other than ErrCommitUnknown nothing was committed.
// ErrCommitUnknown means that the changes are visible but that ctx ended or
// the log failed before they were known to be durable. The transaction has
// ended in every case.
func (tx *Tx) Commit(ctx context.Context) error {
	s, err := tx.enter()
	if err != nil {
		tx.acknowledge()
		return err
	}
	if len(s.writes) == 0 {
		return s.endReading(ctx)
	}
	return s.commit(ctx)
}

// Rollback drops the transaction's changes. After Commit it returns ErrTxDone,
// so that a deferred call is harmless.
func (tx *Tx) Rollback() error {
	s, err := tx.enter()
	if err != nil {
		tx.acknowledge()
		return err
	}
	s.abort()
	return nil
}

// SetDurability makes this transaction's commit wait for less, or more, than
// the database's durability.
func (tx *Tx) SetDurability(d logstream.Durability) error {
	s, err := tx.enter()
	if err != nil {
		return err
	}
	s.durability = d
	s.leave()
	return nil
}

// endReading ends a transaction that changed nothing. A writable one has seen
// what is visible, so it waits until that cannot be lost any more.
func (s *session) endReading(ctx context.Context) error {
	log := s.m.Log
	wait := s.writable.Load() && s.durability.Mode == logstream.Sync && s.readCTS > log.Durable()
	s.release()
	if wait {
		return log.Flush(ctx)
	}
	return nil
}

func (s *session) commit(ctx context.Context) error {
	s.mu.Lock()
	s.collectOldKeys()
	s.split()
	if len(s.parts) == 0 { // every inserted row was deleted again
		s.sweep(0)
		s.forget()
		return s.endReading(ctx)
	}
	ticket, err := s.append(ctx)
	if err != nil {
		s.mu.Unlock()
		s.abort()
		return err
	}
	s.stamp(ticket.CTS)
	s.sweep(ticket.CTS)
	s.m.Log.Publish(ticket)
	s.m.commits.Add(1)
	wait := s.durability.Mode == logstream.Sync
	s.forget()
	s.release()
	return s.m.Log.Acknowledge(ctx, ticket, wait)
}

// keptWrites and keptBytes bound what a session keeps of the buffers of a large
// transaction: sessions live for ever.
const (
	keptWrites = 1 << 12
	keptBytes  = 64 << 10
)

// forget drops the write set, whose versions now belong to their rows.
func (s *session) forget() {
	s.writes = s.writes[:0]
	s.moves = s.moves[:0]
	if cap(s.writes) > keptWrites || cap(s.moves) > keptWrites {
		s.writes, s.moves, s.parts = nil, nil, nil
	}
	s.mu.Unlock()
}

// void reports whether a row was inserted and deleted by this very transaction.
func (s *session) void(w *write) bool { return w.base == 0 && s.version(w).tombstone() }

func (s *session) version(w *write) *version { return versionAt(s.m.Arena, w.ref) }

// collectOldKeys fills s.pending with the old keys that each record carries:
// for a delete the keys in all indexes, for an update those that it changes.
// The base of a write is the newest committed version of its row and stays in
// place while this transaction's version stands on it; the pin covers the
// walk through the indirection.
func (s *session) collectOldKeys() {
	s.h.Pin()
	defer s.h.Unpin()
	s.pending = s.pending[:0]
	for i := range s.writes {
		w := &s.writes[i]
		w.keysFrom = len(s.pending)
		v := s.version(w)
		if w.base != 0 && (v.tombstone() || w.keyMask != 0) {
			s.appendOldKeys(w, v)
		}
		w.keysTo = len(s.pending)
	}
}

func (s *session) appendOldKeys(w *write, v *version) {
	base := versionAt(s.m.Arena, w.base.Ref()).payload()
	candidates := w.keyMask
	if v.tombstone() {
		candidates = w.table.allKeys()
	}
	from := len(s.pending)
	for ; candidates != 0; candidates &= candidates - 1 {
		i := bits.TrailingZeros64(candidates)
		s.oldKey = w.table.Layout.AppendKey(s.oldKey[:0], i, base)
		if v.tombstone() || !w.table.Layout.KeyMatches(i, v.payload(), s.oldKey) {
			s.pending = logstream.AppendOldKey(s.pending, from, i, s.oldKey)
		}
	}
}

func (s *session) oldKeys(w *write) logstream.OldKeys {
	return s.pending[w.keysFrom:w.keysTo]
}

// part is a range of the write set whose records fit into one frame.
type part struct{ from, to, bytes int }

// split cuts the write set into frames of at most MaxPart bytes of records, or
// one record if that is larger. Void rows take no room.
func (s *session) split() {
	s.parts = s.parts[:0]
	var p part
	for i := range s.writes {
		w := &s.writes[i]
		if s.void(w) {
			continue
		}
		n := logstream.RecordBytes(w.keysTo-w.keysFrom, int(s.version(w).size))
		if p.bytes > 0 && p.bytes+n > s.m.MaxPart {
			s.parts = append(s.parts, part{p.from, i, p.bytes})
			p = part{from: i}
		}
		p.bytes += n
	}
	if p.bytes > 0 {
		s.parts = append(s.parts, part{p.from, len(s.writes), p.bytes})
	}
}

// append writes the transaction's frames into the log. With the last one it
// has its CTS and can no longer fail; before, nothing is published.
func (s *session) append(ctx context.Context) (logstream.Ticket, error) {
	var first uint64
	last := len(s.parts) - 1
	for i, p := range s.parts {
		ticket, err := s.m.Log.Reserve(ctx, logstream.Request{
			Shard:  s.h.Shard(),
			Bytes:  logstream.FrameBytes(p.bytes),
			First:  first,
			Part:   i + 1,
			Parts:  last + 1,
			Urgent: s.onlyDeletes(),
		})
		if err != nil {
			if first != 0 {
				s.m.Log.AbandonGroup(first)
			}
			return ticket, err
		}
		if i == 0 {
			first = ticket.CTS
		}
		s.encode(&ticket, p)
		s.m.logged.Add(uint64(p.bytes))
		if i == last {
			return ticket, nil
		}
		s.m.Log.Publish(ticket)
	}
	panic("unreachable") //lint:panic split never returns an empty list here
}

func (s *session) onlyDeletes() bool {
	for i := range s.writes {
		if !s.version(&s.writes[i]).tombstone() {
			return false
		}
	}
	return true
}

// encode writes the records of a part into their frame and gives each version
// the address of its record.
func (s *session) encode(ticket *logstream.Ticket, p part) {
	enc := s.m.Log.Encode(ticket)
	for i := p.from; i < p.to; i++ {
		w := &s.writes[i]
		if s.void(w) {
			continue
		}
		v := s.version(w)
		address := enc.Append(recordKind(w, v), w.table.row(w.ordinal), v.schema(), s.oldKeys(w), v.payload())
		v.log.Store(uint64(address))
	}
	enc.Finish()
}

func recordKind(w *write, v *version) logstream.Kind {
	switch {
	case v.tombstone():
		return logstream.Delete
	case w.base == 0:
		return logstream.Insert
	}
	return logstream.Image
}

// stamp gives every version its commit timestamp. From here on the slot is
// free for the next writer.
func (s *session) stamp(cts uint64) {
	for i := range s.writes {
		if w := &s.writes[i]; !s.void(w) {
			s.version(w).begin.Store(cts)
		}
	}
}

// sweep reports what the commit has left behind. It runs before Publish, so
// that the garbage of one row is queued in the order of its commits.
func (s *session) sweep(cts uint64) {
	s.h.Pin()
	defer s.h.Unpin()
	for i := range s.writes {
		w := &s.writes[i]
		row := w.table.row(w.ordinal)
		if s.void(w) {
			s.swapBack(w.table, w.ordinal, w.ref, 0)
			s.m.Garbage.free(0, row)
			continue
		}
		if w.base == 0 {
			continue
		}
		s.m.Garbage.versions(cts, row)
		s.suspectOldKeys(w, cts)
		if s.version(w).tombstone() {
			s.m.Garbage.free(cts, row)
		}
	}
}

func (s *session) suspectOldKeys(w *write, cts uint64) {
	row := w.table.row(w.ordinal)
	err := s.oldKeys(w).Each(func(index int, key []byte) { s.m.Garbage.suspect(cts, row, index, key) })
	if invariants.Enabled && err != nil {
		invariants.Fail("old keys of row %v: %v", row, err)
	}
}

// abort takes all versions off their slots and ends the transaction.
func (s *session) abort() {
	s.undo()
	s.release()
}

func (s *session) undo() {
	s.mu.Lock()
	s.h.Pin()
	for i := len(s.writes) - 1; i >= 0; i-- {
		w := &s.writes[i]
		tombstone := s.version(w).tombstone()
		s.swapBack(w.table, w.ordinal, w.ref, w.base)
		clean := s.dropKeys(w.table, w.ordinal, w.ref, w.keyMask)
		if w.base == 0 { // keys of its earlier versions became suspects when those were replaced
			s.freeRow(w.table, w.ordinal, clean && !tombstone && !s.movedAgain(w))
		}
	}
	s.h.Unpin()
	if len(s.writes) > 0 {
		s.m.aborts.Add(1)
	}
	s.forget()
}
