package indextest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// maxEmptyFills is how many empty fills in a row count as going nowhere.
const maxEmptyFills = 10_000

var errStuck = errors.New("the scan makes no progress")

// session is one goroutine's access to an index: it pins around each call and
// spoils what it passed in afterwards, so that an index that keeps it is caught.
type session struct {
	ix  index.Index
	h   *epoch.Handle
	key []byte
}

func (s *session) pin(key string) []byte {
	s.key = append(s.key[:0], key...)
	s.h.Pin()
	return s.key
}

func (s *session) unpin() {
	s.h.Unpin()
	clear(s.key)
}

func (s *session) insert(key string, r rowid.ID, unique index.Checker) error {
	defer s.unpin()
	return s.ix.Insert(s.h, s.pin(key), r, unique)
}

// remove takes an entry out and reports whether dead was asked.
func (s *session) remove(key string, r rowid.ID, dead bool) (removed, asked bool, err error) {
	removed, err = s.removeIf(key, r, func() bool {
		asked = true
		return dead
	})
	return removed, asked, err
}

func (s *session) removeIf(key string, r rowid.ID, dead func() bool) (bool, error) {
	defer s.unpin()
	return s.ix.Remove(s.h, s.pin(key), r, dead)
}

func (s *session) lookup(key string) ([]rowid.ID, error) {
	defer s.unpin()
	return s.ix.Lookup(s.h, s.pin(key), nil)
}

// fill is one call to Scan.
func (s *session) fill(r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	s.h.Pin()
	defer s.h.Unpin()
	return s.ix.Scan(s.h, r, c, b)
}

// scan delivers a whole range.
func (s *session) scan(r index.Range) ([]Entry, error) {
	var (
		c   index.Cursor
		b   index.Batch
		all []Entry
	)
	for idle := 0; idle < maxEmptyFills; idle++ {
		more, err := s.fill(r, &c, &b)
		if err != nil {
			return all, err
		}
		if b.Len() > 0 {
			idle = 0
			all = append(all, entries(&b)...)
		}
		if !more {
			return all, nil
		}
	}
	return all, errStuck
}

// entries copies the entries of a batch.
func entries(b *index.Batch) []Entry {
	all := make([]Entry, b.Len())
	for i := range all {
		all[i] = Entry{string(b.Key(i)), b.Row(i)}
	}
	return all
}

// equals compares all of an index, found by scans both ways and by lookups,
// with the model.
func (s *session) equals(m *Model) error {
	for _, r := range []index.Range{{}, {Reverse: true}} {
		got, err := s.scan(r)
		if err != nil {
			return err
		}
		if err := sameEntries(m.Behind(r, &index.Cursor{}), got); err != nil {
			return fmt.Errorf("scan, reverse %v: %w", r.Reverse, err)
		}
	}
	return s.findsAll(m)
}

func (s *session) findsAll(m *Model) error {
	for i, e := range m.entries {
		if i > 0 && m.entries[i-1].Key == e.Key {
			continue
		}
		if err := s.finds(e.Key, m.Rows(e.Key)); err != nil {
			return err
		}
	}
	return nil
}

// finds compares what a lookup of key delivers.
func (s *session) finds(key string, want []rowid.ID) error {
	got, err := s.lookup(key)
	if err != nil {
		return err
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("lookup of %x: got %v, want %v", key, got, want)
	}
	return nil
}
