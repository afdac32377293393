package indextest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/rowid"
)

var errTaken = errors.New("the key is taken")

func checkerCases() []testCase {
	return []testCase{
		{name: "checker sees every other row of the key", run: checkerSees},
		{name: "checker's error aborts the insert", run: checkerAborts},
		{name: "checker is asked for a present entry too", run: checkerOfPresent},
	}
}

// checker records what it is asked.
type checker struct {
	asked  map[rowid.ID]bool
	refuse rowid.ID
}

func (c *checker) Check(other rowid.ID) error {
	if c.asked == nil {
		c.asked = map[rowid.ID]bool{}
	}
	c.asked[other] = true
	if other == c.refuse {
		return errTaken
	}
	return nil
}

// checkFunc is a checker that needs no state of its own.
type checkFunc func(other rowid.ID) error

func (f checkFunc) Check(other rowid.ID) error { return f(other) }

// checkedKeys come with neighbours that must not be taken for them.
var checkedKeys = []string{"", "a", "\x00", "\xff", "eight by", "eight by\x00", "eight bytes and more", "eight bytes and more\x00"}

func checkerSees(t T, f *fixture) {
	s := f.create()
	for i, key := range checkedKeys {
		for n := range 5 {
			require.NoError(t, s.insert(key, row(10*i+n+1), nil))
		}
	}
	for i, key := range checkedKeys {
		c, want := &checker{}, map[rowid.ID]bool{}
		for n := range 5 {
			want[row(10*i+n+1)] = true
		}
		require.NoError(t, s.insert(key, row(1000), c))
		require.Equal(t, want, c.asked, "key %x", key)
	}
	c := &checker{}
	require.NoError(t, s.insert("eight bytes", row(1), c))
	require.Empty(t, c.asked)
}

func checkerAborts(t T, f *fixture) {
	s, m := f.create(), &Model{}
	for n := range 5 {
		e := Entry{"key", row(n + 1)}
		m.Insert(e)
		require.NoError(t, s.insert(e.Key, e.Row, nil))
	}
	for n := range 5 {
		c := &checker{refuse: row(n + 1)}
		require.Equal(t, errTaken, s.insert("key", row(9), c))
		require.True(t, c.asked[row(n+1)])
	}
	require.NoError(t, s.equals(m))
	require.EqualValues(t, m.Len(), s.ix.Stats().Entries)
}

// checkerOfPresent re-enters a key that its row once had, while another row may
// have taken it.
func checkerOfPresent(t T, f *fixture) {
	s := f.create()
	for n := range 3 {
		require.NoError(t, s.insert("key", row(n+1), nil))
	}
	c := &checker{}
	require.NoError(t, s.insert("key", row(2), c))
	require.Equal(t, map[rowid.ID]bool{row(1): true, row(3): true}, c.asked)
	require.Equal(t, errTaken, s.insert("key", row(2), &checker{refuse: row(3)}))
	require.NoError(t, s.finds("key", []rowid.ID{row(1), row(2), row(3)}),
		"a refused insert takes nothing away")
}
