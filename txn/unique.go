package txn

import (
	"errors"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// Verdicts of a unique check. They are made into errors with table, index and
// key outside the key's latch.
var (
	errTaken    = errors.New("key is taken")
	errInFlight = errors.New("another transaction is writing or freeing this key")
	errTooNew   = errors.New("the key was taken or freed after this transaction's snapshot")
	errCold     = errors.New("row has to come online first")
)

// uniqueCheck is the index.Checker of one insert into a unique index.
//
// A key is taken if the latest committed version of a row entered under it has
// it. If a version in flight has or had it, or if that changed after the
// snapshot, the outcome is not known or not visible: a conflict.
type uniqueCheck struct {
	s     *session
	t     *Table
	index int
	key   []byte
	cold  uint64 // with errCold: the row that has to come online
}

// Check walks the chain of another row entered under the key. It runs under
// the key's latch and under the session's pin.
func (u *uniqueCheck) Check(other rowid.ID) error {
	word, err := u.t.Rows.Load(other.Ordinal())
	if err != nil {
		return err
	}
	var newer error // what a version that the snapshot does not see makes of a match below it
	for word != 0 {
		if word.IsLog() {
			u.cold = other.Ordinal()
			return errCold
		}
		v := versionAt(u.s.m.Arena, word.Ref())
		has := !v.tombstone() && u.t.Layout.KeyMatches(u.index, v.payload(), u.key)
		begin := v.begin.Load()
		switch {
		case begin == u.s.owner:
			return verdict(has, errTaken)
		case begin&uncommitted != 0:
			newer = errInFlight
		case begin > u.s.readCTS:
			if newer == nil {
				newer = errTooNew
			}
		case newer != nil:
			return verdict(has, newer)
		default:
			return verdict(has, errTaken)
		}
		if has {
			return newer
		}
		word = v.olderWord()
	}
	return nil
}

func verdict(has bool, err error) error {
	if has {
		return err
	}
	return nil
}

// addEntry enters a row under a key, with the unique check if the index wants
// one. Pinned on entry and on return.
func (s *session) addEntry(t *Table, number int, key []byte, row rowid.ID, unique bool) error {
	index := t.Indexes[number]
	if s.m.entered.on.Load() {
		s.m.entered.add(row, number, key)
	}
	if !unique {
		return index.Insert(s.h, key, row, nil)
	}
	for {
		s.unique = uniqueCheck{s: s, t: t, index: number, key: key}
		err := index.Insert(s.h, key, row, &s.unique)
		if err != errCold {
			return s.explain(t, number, key, err)
		}
		if _, err := s.online(t, s.unique.cold); err != nil {
			return err
		}
	}
}

// explain adds table, index and key to the verdict of a unique check.
func (s *session) explain(t *Table, number int, key []byte, err error) error {
	switch err {
	case errTaken:
		return &fault.DuplicateKey{Table: t.Name(), Index: t.Schema.Indexes[number].Name, Key: t.Layout.FormatKey(number, key)}
	case errInFlight, errTooNew:
		return s.conflict(t, number, key, err)
	}
	return err
}

func (s *session) conflict(t *Table, number int, key []byte, reason error) error {
	s.m.conflicts.Add(1)
	c := &fault.Conflict{Table: t.Name(), Key: t.Layout.FormatKey(number, key), Reason: reason.Error()}
	if number != 0 {
		c.Index = t.Schema.Indexes[number].Name
	}
	return c
}
