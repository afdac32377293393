package indextest

import (
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
)

func modelCases() []testCase {
	return []testCase{
		{name: "random operations", run: randomOperations},
		{name: "grow and shrink", run: growAndShrink},
	}
}

func randomOperations(t T, f *fixture) {
	for _, space := range keySpaces() {
		s, m := f.create(), &Model{}
		for range 2000 {
			require.NoError(t, s.randomOperation(m, f.rand, space), space.name)
		}
		require.NoError(t, s.equals(m), space.name)
		require.EqualValues(t, m.Len(), s.ix.Stats().Entries, space.name)
	}
}

func (s *session) randomOperation(m *Model, rng *rand.Rand, space keySpace) error {
	e := Entry{space.draw(rng), row(1 + rng.IntN(8))}
	switch rng.IntN(20) {
	case 0:
		return s.walk(m, rng, randomRange(rng, space), 1+rng.IntN(20))
	case 1, 2, 3, 4:
		return s.finds(e.Key, m.Rows(e.Key))
	case 5, 6, 7, 8, 9:
		return s.checkedRemove(m, e, rng.IntN(5) > 0)
	case 10, 11:
		return s.checkedUnique(m, e)
	default:
		m.Insert(e)
		return s.insert(e.Key, e.Row, nil)
	}
}

func (s *session) checkedRemove(m *Model, e Entry, dead bool) error {
	present := m.Has(e)
	removed, asked, err := s.remove(e.Key, e.Row, dead)
	if err != nil {
		return err
	}
	if asked != present || removed != (present && dead) {
		return fmt.Errorf("remove of %v, present %v, dead %v: asked %v, removed %v", e, present, dead, asked, removed)
	}
	if removed {
		m.Remove(e)
	}
	return nil
}

// checkedUnique inserts if no other row is entered under the key.
func (s *session) checkedUnique(m *Model, e Entry) error {
	taken := false
	for _, r := range m.Rows(e.Key) {
		taken = taken || r != e.Row
	}
	err := s.insert(e.Key, e.Row, refuseAll)
	switch {
	case taken && err == errTaken:
		return nil
	case taken || err != nil:
		return fmt.Errorf("unique insert of %v, taken %v: %v", e, taken, err)
	}
	m.Insert(e)
	return nil
}

// growAndShrink lets the index become large and empty again, a few times, so
// that nodes split and merge on all levels.
func growAndShrink(t T, f *fixture) {
	s, m := f.create(), &Model{}
	present := map[Entry]bool{}
	for range 2 {
		grow(t, f, s, present, 6000)
		sample(t, s, m, present)
		shrink(t, f, s, present, 300)
		sample(t, s, m, present)
	}
	shrink(t, f, s, present, 0)
	require.NoError(t, s.equals(&Model{}))
}

func grow(t T, f *fixture, s *session, present map[Entry]bool, size int) {
	for len(present) < size {
		e := Entry{integerKey(f.rand.Uint64N(20_000)), row(1 + f.rand.IntN(3))}
		if f.rand.IntN(3) == 0 {
			e.Key = fmt.Sprintf("customer/%d", f.rand.IntN(20_000))
		}
		present[e] = true
		require.NoError(t, s.insert(e.Key, e.Row, nil))
	}
}

// shrink removes in the order of the map, which is as good as random.
func shrink(t T, _ *fixture, s *session, present map[Entry]bool, size int) {
	for e := range present {
		if len(present) <= size {
			return
		}
		removed, _, err := s.remove(e.Key, e.Row, true)
		require.NoError(t, err)
		require.True(t, removed)
		delete(present, e)
	}
}

// sample makes the model equal to present and checks the index by it.
func sample(t T, s *session, m *Model, present map[Entry]bool) {
	*m = modelOf(present)
	require.NoError(t, s.equals(m))
	require.EqualValues(t, m.Len(), s.ix.Stats().Entries)
	mid := m.entries[m.Len()/2]
	got, err := s.scan(index.Range{Lo: []byte(mid.Key)})
	require.NoError(t, err)
	require.NoError(t, sameEntries(m.Behind(index.Range{Lo: []byte(mid.Key)}, &index.Cursor{}), got))
}
