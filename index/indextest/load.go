package indextest

import (
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
)

func loadCases() []testCase {
	return []testCase{
		{name: "bulk load", run: bulkLoad},
		{name: "bulk load of nothing", run: bulkLoadNothing},
		{name: "bulk load refuses disorder", run: bulkLoadDisorder},
		{name: "bulk load abandoned", run: bulkLoadAbandoned},
		{name: "changes after a bulk load", run: changesAfterLoad},
	}
}

// load builds an index of the model's entries.
func (f *fixture) load(m *Model) *session {
	b := f.builder()
	for _, e := range m.entries {
		require.NoError(f.t, b.Add([]byte(e.Key), e.Row))
	}
	ix, err := b.Finish()
	require.NoError(f.t, err)
	return f.adopt(ix)
}

func (f *fixture) builder() index.Builder {
	b, err := f.strategy.NewBuilder(f.spec)
	require.NoError(f.t, err)
	return b
}

func bulkLoad(t T, f *fixture) {
	for _, space := range keySpaces() {
		m := f.randomModel(space, 2000)
		s := f.load(m)
		require.NoError(t, s.equals(m), space.name)
		require.EqualValues(t, m.Len(), s.ix.Stats().Entries)
	}
	m := f.randomModel(keySpace{draw: wideKey}, 20_000)
	require.NoError(t, f.load(m).equals(m))
}

func bulkLoadNothing(t T, f *fixture) {
	s, m := f.load(&Model{}), &Model{}
	require.NoError(t, s.equals(m))
	require.NoError(t, s.toggle(m, Entry{"key", row(1)}))
	require.NoError(t, s.equals(m))
}

func bulkLoadDisorder(t T, f *fixture) {
	b, m := f.builder(), &Model{}
	add := func(key string, n int) error { return b.Add([]byte(key), row(n)) }
	for _, e := range []Entry{{"", row(2)}, {"eight by", row(2)}, {"eight bytes", row(2)}} {
		m.Insert(e)
		require.NoError(t, b.Add([]byte(e.Key), e.Row))
		require.NoError(t, b.Add([]byte(e.Key), e.Row), "the last entry again")
		require.ErrorIs(t, add(e.Key, 1), index.ErrOrder)
	}
	require.ErrorIs(t, add("eight byte", 3), index.ErrOrder)
	require.ErrorIs(t, add("eight by", 3), index.ErrOrder)
	require.ErrorIs(t, add("", 3), index.ErrOrder)
	ix, err := b.Finish()
	require.NoError(t, err)
	require.NoError(t, f.adopt(ix).equals(m), "a refused entry leaves no trace")
}

func bulkLoadAbandoned(t T, f *fixture) {
	f.builder().Abandon()
	b := f.builder()
	require.NoError(t, b.Add([]byte("key"), row(1)))
	b.Abandon()

	b = f.builder()
	require.NoError(t, b.Add([]byte("key"), row(1)))
	ix, err := b.Finish()
	require.NoError(t, err)
	b.Abandon()
	require.NoError(t, f.adopt(ix).equals(&Model{[]Entry{{"key", row(1)}}}))
}

func changesAfterLoad(t T, f *fixture) {
	for _, space := range keySpaces() {
		m := f.randomModel(space, 500)
		s := f.load(m)
		for range 1000 {
			require.NoError(t, s.randomOperation(m, f.rand, space), space.name)
		}
		require.NoError(t, s.equals(m), space.name)
	}
}

// randomModel draws n entries, some of them equal.
func (f *fixture) randomModel(space keySpace, n int) *Model {
	present := map[Entry]bool{}
	for range n {
		present[Entry{space.draw(f.rand), row(1 + f.rand.IntN(5))}] = true
	}
	m := modelOf(present)
	return &m
}
