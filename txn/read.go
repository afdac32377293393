package txn

import (
	"errors"
	"fmt"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/logstream"
)

// errMoved says that a slot no longer holds the log address that was read: its
// reader starts over. It never leaves the package.
var errMoved = errors.New("row moved while it was read")

// Get returns the row whose key in the given index is key, or found false.
// Index must be unique.
func (c *Call) Get(t *Table, index int, key []byte) (row []byte, found bool, err error) {
	s := c.s
	s.h.Pin()
	_, found, err = s.locate(t, index, key)
	s.h.Unpin()
	return s.row, found, err
}

// locate finds the row that s sees under key and leaves its payload in s.row.
// Pinned on entry and on return.
func (s *session) locate(t *Table, index int, key []byte) (ordinal uint64, found bool, err error) {
	s.rows, err = t.Indexes[index].Lookup(s.h, searchable(key), s.rows[:0])
	if err != nil {
		return 0, false, err
	}
	for _, row := range s.rows {
		ordinal = row.Ordinal()
		s.row, found, err = s.fetch(t, ordinal, s.row[:0], wanted)
		if err != nil {
			return 0, false, err
		}
		if found && t.Layout.KeyMatches(index, s.row, key) {
			return ordinal, true, nil
		}
	}
	return 0, false, nil
}

// searchable cuts a key to what indexes take. Keys above MaxKeySize are never
// entered. With those that are it compares as its first bytes do, because no
// key is the beginning of another one.
func searchable(key []byte) []byte { return key[:min(len(key), schema.MaxKeySize)] }

// visible returns the word of the version in a chain that s sees, 0 if there
// is none or it is a tombstone.
func (s *session) visible(word indirection.Word) indirection.Word {
	for word != 0 && !word.IsLog() {
		v := versionAt(s.m.Arena, word.Ref())
		begin := v.begin.Load()
		if begin == s.owner || begin <= s.readCTS {
			if v.tombstone() {
				return 0
			}
			return word
		}
		word = v.olderWord()
	}
	return word
}

// use says what a row is read for, and with that whether it should be in memory.
type use bool

const (
	wanted  use = true  // by its key: it may well be wanted again
	passing use = false // by a scan, which would fill the memory with rows that nobody has asked for
)

// note keeps a version that is wanted from being frozen.
func (s *session) note(v *version, purpose use) {
	if purpose == wanted && s.m.freezes() {
		v.touch()
	}
}

// fetch appends the payload that s sees in a slot to dst. Pinned on entry and
// on return, but not while a record is read from the log.
func (s *session) fetch(t *Table, ordinal uint64, dst []byte, purpose use) (row []byte, found bool, err error) {
	for {
		head, err := t.Rows.Load(ordinal)
		if err != nil {
			return dst, false, err
		}
		word := s.visible(head)
		if word == 0 {
			return dst, false, nil
		}
		if !word.IsLog() {
			v := versionAt(s.m.Arena, word.Ref())
			s.note(v, purpose)
			return append(dst, v.payload()...), true, nil
		}
		payload, err := s.readLog(t, ordinal, word)
		if err == errMoved {
			continue
		}
		if err != nil {
			return dst, false, err
		}
		if err := s.keep(t, ordinal, word, payload, purpose); err != nil {
			return dst, false, err
		}
		return append(dst, payload...), true, nil
	}
}

// readLog reads the record at a log address found in the chain of ordinal,
// with the epoch unpinned meanwhile. The payload is valid until the next call.
func (s *session) readLog(t *Table, ordinal uint64, word indirection.Word) ([]byte, error) {
	s.h.Unpin()
	record, buf, err := s.m.Log.ReadAt(word.Address(), s.cold)
	s.h.Pin()
	s.m.countCold()
	s.cold = buf
	wrong := ""
	if err == nil {
		wrong = t.notRow(ordinal, &record)
	}
	if err == nil && wrong == "" {
		return record.Payload, nil
	}
	if now, loadErr := t.Rows.Load(ordinal); loadErr == nil && s.visible(now) != word {
		return nil, errMoved
	}
	path, offset := s.m.Log.Place(word.Address())
	if err == nil {
		err = fault.Corrupt(path, offset, 0, "%s", wrong)
	}
	return nil, &fault.Read{Table: t.Name(), Row: ordinal, Path: path, Offset: offset, Err: err}
}

// notRow says why a record is not one of a row of the table, or "". A checksum proves
// that it is as it was written, but not that this was a row.
func (t *Table) notRow(ordinal uint64, r *logstream.Record) string {
	if r.Row != t.row(ordinal) {
		return fmt.Sprintf("record of row %v", r.Row)
	}
	if err := t.Layout.Check(r.Payload); err != nil {
		return err.Error()
	}
	return ""
}

// keep brings a row that was read from the log online, if it should be in memory.
// That there is no room is no failure of a read.
func (s *session) keep(t *Table, ordinal uint64, word indirection.Word, payload []byte, purpose use) error {
	if !s.m.admits(t.row(ordinal), purpose) {
		return nil
	}
	if err := s.publish(t, ordinal, word, payload); !errors.Is(err, fault.ErrMemoryLimit) {
		return err
	}
	return nil
}

// publish brings a row online: it replaces the log address in the slot by an
// arena copy of the record. Losing the race for the slot is fine.
func (s *session) publish(t *Table, ordinal uint64, word indirection.Word, payload []byte) error {
	ref, err := s.m.Arena.Alloc(s.h.Shard(), headerBytes+len(payload))
	if err != nil {
		return err
	}
	v := versionAt(s.m.Arena, ref)
	initVersion(v, beginOfOld, 0, t.Version, 0, payload)
	v.log.Store(uint64(word.Address()))
	swapped, err := t.Rows.CompareAndSwap(s.h.Shard(), ordinal, word, indirection.FromRef(ref))
	if !swapped || err != nil {
		s.m.Arena.Free(s.h.Shard(), ref, v.blockBytes())
		return err
	}
	s.m.broughtOnline.Add(1)
	return nil
}

// online makes sure that the head of a slot is not a log address.
func (s *session) online(t *Table, ordinal uint64) (indirection.Word, error) {
	for {
		head, err := t.Rows.Load(ordinal)
		if err != nil || !head.IsLog() {
			return head, err
		}
		payload, err := s.readLog(t, ordinal, head)
		if err == errMoved {
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := s.publish(t, ordinal, head, payload); err != nil {
			return 0, err
		}
	}
}
