package indextest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

func entryCases() []testCase {
	return []testCase{
		{name: "empty index", run: emptyIndex},
		{name: "insert is idempotent", run: insertIdempotent},
		{name: "rows of one key ascend", run: rowsAscend},
		{name: "many rows of one key", run: manyRows},
		{name: "keys that are prefixes of each other", run: nestedKeys},
		{name: "remove asks for a present entry only", run: removeAsks},
		{name: "keys handed out are copies", run: keysAreCopies},
		{name: "lookup does not allocate", run: lookupAllocates},
		{name: "extreme ordinals", run: extremeOrdinals},
	}
}

func emptyIndex(t T, f *fixture) {
	s := f.create()
	require.NoError(t, s.equals(&Model{}))
	require.NoError(t, s.finds("absent", nil))
	removed, asked, err := s.remove("absent", row(1), true)
	require.NoError(t, err)
	require.False(t, removed || asked)
	require.Zero(t, s.ix.Stats().Entries)
}

func insertIdempotent(t T, f *fixture) {
	s := f.create()
	for range 3 {
		require.NoError(t, s.insert("key", row(1), nil))
		require.NoError(t, s.insert("a key that is somewhat longer", row(1), nil))
	}
	require.NoError(t, s.finds("key", []rowid.ID{row(1)}))
	require.NoError(t, s.finds("a key that is somewhat longer", []rowid.ID{row(1)}))
	stats := s.ix.Stats()
	require.EqualValues(t, 2, stats.Entries)
	require.Positive(t, stats.Bytes)
}

func rowsAscend(t T, f *fixture) {
	s := f.create()
	for _, n := range []int{5, 1, 4, 2, 3} {
		require.NoError(t, s.insert("key", row(n), nil))
		require.NoError(t, s.insert("kex", row(n), nil))
	}
	want := []rowid.ID{row(1), row(2), row(3), row(4), row(5)}
	require.NoError(t, s.finds("key", want))
	s.h.Pin()
	defer s.h.Unpin()
	got, err := s.ix.Lookup(s.h, []byte("key"), []rowid.ID{row(9)})
	require.NoError(t, err)
	require.Equal(t, append([]rowid.ID{row(9)}, want...), got)
}

// manyRows has more entries of a key than a node holds.
func manyRows(t T, f *fixture) {
	const rows = 3000
	s, m := f.create(), &Model{}
	for _, n := range f.rand.Perm(rows) {
		require.NoError(t, s.insert("the only key", row(n+1), nil))
	}
	for n := range rows {
		m.entries = append(m.entries, Entry{"the only key", row(n + 1)})
	}
	require.NoError(t, s.equals(m))
	for _, n := range f.rand.Perm(rows) {
		removed, _, err := s.remove("the only key", row(n+1), true)
		require.NoError(t, err)
		require.True(t, removed)
	}
	require.NoError(t, s.equals(&Model{}))
}

func nestedKeys(t T, f *fixture) {
	s, m := f.create(), &Model{}
	for _, unit := range []string{"\x00", "a", "\xff"} {
		key := ""
		for n := range 20 {
			e := Entry{key, row(n + 1)}
			m.Insert(e)
			require.NoError(t, s.insert(e.Key, e.Row, nil))
			key += unit
		}
	}
	require.NoError(t, s.equals(m))
}

func removeAsks(t T, f *fixture) {
	s := f.create()
	require.NoError(t, s.insert("key", row(1), nil))
	for _, step := range []struct {
		key            string
		row            rowid.ID
		dead           bool
		removed, asked bool
	}{
		{"key", row(2), true, false, false},
		{"kex", row(1), true, false, false},
		{"key\x00", row(1), true, false, false},
		{"key", row(1), false, false, true},
		{"key", row(1), true, true, true},
		{"key", row(1), true, false, false},
	} {
		removed, asked, err := s.remove(step.key, step.row, step.dead)
		require.NoError(t, err)
		require.Equal(t, step.removed, removed, "%+v", step)
		require.Equal(t, step.asked, asked, "%+v", step)
	}
	require.NoError(t, s.equals(&Model{}))
	require.Zero(t, s.ix.Stats().Entries)
}

func keysAreCopies(t T, f *fixture) {
	s := f.create()
	m := &Model{}
	for n := range 10 {
		e := Entry{fmt.Sprintf("a key of some length %d", n), row(n + 1)}
		m.Insert(e)
		require.NoError(t, s.insert(e.Key, e.Row, nil))
	}
	var c index.Cursor
	var b index.Batch
	_, err := s.fill(index.Range{}, &c, &b)
	require.NoError(t, err)
	for i := range b.Len() {
		clear(b.Key(i))
	}
	require.NoError(t, s.equals(m))
}

func lookupAllocates(t T, f *fixture) {
	if invariants.Enabled {
		return // the checks of such builds allocate
	}
	s := f.create()
	keys := [][]byte{[]byte("key"), []byte(integerKey(7)), []byte("a key of more than eight bytes"), []byte("absent")}
	for i, key := range keys[:3] {
		require.NoError(t, s.insert(string(key), row(i+1), nil))
	}
	dst := make([]rowid.ID, 0, 8)
	allocs := testing.AllocsPerRun(100, func() {
		s.h.Pin()
		defer s.h.Unpin()
		for _, key := range keys {
			dst, _ = s.ix.Lookup(s.h, key, dst[:0])
		}
	})
	require.Zero(t, allocs)
}

func extremeOrdinals(t T, f *fixture) {
	s, m := f.create(), &Model{}
	for _, key := range []string{"", "key", "eight by", "eight by\x00", "more than eight bytes"} {
		for _, ordinal := range []uint64{1, 2, rowid.MaxOrdinal - 1, rowid.MaxOrdinal} {
			e := Entry{key, rowid.Make(table, ordinal)}
			m.Insert(e)
			require.NoError(t, s.insert(e.Key, e.Row, nil))
		}
	}
	require.NoError(t, s.equals(m))
	for first := 1; first < 6; first++ {
		require.NoError(t, s.walk(m, f.rand, index.Range{}, first))
		require.NoError(t, s.walk(m, f.rand, index.Range{Reverse: true}, first))
	}
}
