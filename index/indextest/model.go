package indextest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// Entry is one entry of an index.
type Entry struct {
	Key string
	Row rowid.ID
}

func (e Entry) String() string { return fmt.Sprintf("(%x, %v)", e.Key, e.Row) }

func compareEntries(a, b Entry) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.Row, b.Row))
}

// Model is what an index should hold. The zero value is empty.
type Model struct {
	entries []Entry // ascending
}

// modelOf holds the given entries.
func modelOf(present map[Entry]bool) Model {
	return Model{slices.SortedFunc(maps.Keys(present), compareEntries)}
}

// Len returns the number of entries.
func (m *Model) Len() int { return len(m.entries) }

// Insert adds an entry and reports whether it was absent.
func (m *Model) Insert(e Entry) bool {
	i, found := slices.BinarySearchFunc(m.entries, e, compareEntries)
	if !found {
		m.entries = slices.Insert(m.entries, i, e)
	}
	return !found
}

// Remove takes an entry out and reports whether it was present.
func (m *Model) Remove(e Entry) bool {
	i, found := slices.BinarySearchFunc(m.entries, e, compareEntries)
	if found {
		m.entries = slices.Delete(m.entries, i, i+1)
	}
	return found
}

// Has reports whether an entry is present.
func (m *Model) Has(e Entry) bool {
	_, found := slices.BinarySearchFunc(m.entries, e, compareEntries)
	return found
}

// Clone returns a copy.
func (m *Model) Clone() *Model { return &Model{slices.Clone(m.entries)} }

// Rows returns the rows entered under a key.
func (m *Model) Rows(key string) []rowid.ID {
	i, _ := slices.BinarySearchFunc(m.entries, Entry{Key: key}, compareEntries)
	var rows []rowid.ID
	for ; i < len(m.entries) && m.entries[i].Key == key; i++ {
		rows = append(rows, m.entries[i].Row)
	}
	return rows
}

// Behind returns all entries of the range behind the cursor in the order of
// the scan. They are valid until the model changes.
func (m *Model) Behind(r index.Range, c *index.Cursor) []Entry {
	lo, hi := m.below(Entry{Key: string(r.Lo)}), len(m.entries)
	if r.Hi != nil {
		hi = m.below(Entry{Key: string(r.Hi)})
	}
	key, row := c.Entry()
	switch {
	case c.Started() && r.Reverse:
		hi = min(hi, m.below(Entry{string(key), row}))
	case c.Started():
		lo = max(lo, m.below(Entry{string(key), row + 1}))
	}
	behind := m.entries[min(lo, hi):hi]
	if r.Reverse {
		behind = slices.Clone(behind)
		slices.Reverse(behind)
	}
	return behind
}

// below counts the entries below e. No entry has row 0.
func (m *Model) below(e Entry) int {
	n, _ := slices.BinarySearchFunc(m.entries, e, compareEntries)
	return n
}

// sameEntries says where got departs from want.
func sameEntries(want, got []Entry) error {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Errorf("entry %d is %v, want %v", i, got[i], want[i])
		}
	}
	switch {
	case len(got) < len(want):
		return fmt.Errorf("ends after %d entries, want %v next and %d in all", len(got), want[len(got)], len(want))
	case len(got) > len(want):
		return fmt.Errorf("goes on with %v after all %d entries", got[len(want)], len(want))
	}
	return nil
}

func (m *Model) set() map[Entry]bool {
	all := map[Entry]bool{}
	for _, e := range m.entries {
		all[e] = true
	}
	return all
}
