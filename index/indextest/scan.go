package indextest

import (
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/keyenc"
)

func rangeCases() []testCase {
	return []testCase{
		{name: "range bounds", run: rangeBounds},
		{name: "prefix ranges", run: prefixRanges},
		{name: "fills grow", run: fillsGrow},
		{name: "random ranges", run: randomRanges},
	}
}

func resumeCases() []testCase {
	return []testCase{
		{name: "resume after changes", run: resumeAfterChanges},
		{name: "turn round", run: turnRound},
		{name: "cursor at an absent entry", run: cursorAtAbsent},
		{name: "delete everything by scanning", run: deleteByScanning},
	}
}

// checkedFill is one call to Scan, held against the model: what it delivers and
// what then lies behind the cursor are what lay behind the cursor before.
func (s *session) checkedFill(m *Model, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	want := m.Behind(r, c)
	limit := b.Max
	if !c.Started() {
		limit = b.First
	}
	more, err := s.fill(r, c, b)
	if err != nil {
		return false, err
	}
	got, rest := entries(b), m.Behind(r, c)
	switch err := sameEntries(want, append(got, rest...)); {
	case err != nil:
		return false, fmt.Errorf("fill of %+v: %w", r, err)
	case limit > 0 && len(got) > limit:
		return false, fmt.Errorf("fill of %d entries, limit %d", len(got), limit)
	case !more && len(rest) > 0:
		return false, fmt.Errorf("scan of %+v stops before %v", r, rest[0])
	}
	return more, nil
}

// walk delivers a range in fills of random size; the first has the given one.
func (s *session) walk(m *Model, rng *rand.Rand, r index.Range, first int) error {
	var c index.Cursor
	b := index.Batch{First: first}
	for range maxEmptyFills {
		b.Max = 1 + rng.IntN(20)
		more, err := s.checkedFill(m, r, &c, &b)
		if err != nil || !more {
			return err
		}
	}
	return errStuck
}

// edgeModel has keys at every edge: empty, zero and 0xff bytes, around the
// eighth byte, and gaps between them.
func edgeModel() *Model {
	m := &Model{}
	for i, key := range []string{
		"", "\x00", "\x00\x00", "\x01", "a", "a\x00", "a\xff", "a\xff\xff", "ab", "b",
		"eight by", "eight by\x00", "eight bytes", "eight bz",
		"\xfe\xff", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		for n := range 1 + i%3 {
			m.Insert(Entry{key, row(i*3 + n + 1)})
		}
	}
	return m
}

func (f *fixture) fillWith(m *Model) *session {
	s := f.create()
	for _, i := range f.rand.Perm(m.Len()) {
		e := m.entries[i]
		require.NoError(f.t, s.insert(e.Key, e.Row, nil))
	}
	return s
}

// edgeBounds are all keys of the model and absent ones on both sides of them.
func edgeBounds(m *Model) [][]byte {
	bounds := [][]byte{nil, {}}
	for _, e := range m.entries {
		bounds = append(bounds, []byte(e.Key), []byte(e.Key+"\x00"), []byte(e.Key+"m"))
	}
	return bounds
}

func rangeBounds(t T, f *fixture) {
	m := edgeModel()
	s := f.fillWith(m)
	bounds := edgeBounds(m)
	for _, lo := range bounds {
		for _, hi := range bounds {
			r := index.Range{Lo: lo, Hi: hi, Reverse: f.rand.IntN(2) == 0}
			require.NoError(t, s.walk(m, f.rand, r, 1+f.rand.IntN(9)))
		}
	}
}

func prefixRanges(t T, f *fixture) {
	m := edgeModel()
	s := f.fillWith(m)
	for _, prefix := range edgeBounds(m) {
		r := index.Range{Lo: prefix}
		if end, bounded := keyenc.PrefixEnd(prefix); bounded {
			r.Hi = end
		}
		require.NoError(t, s.walk(m, f.rand, r, 3))
		r.Reverse = true
		require.NoError(t, s.walk(m, f.rand, r, 3))
	}
}

func fillsGrow(t T, f *fixture) {
	s := f.create()
	for n := range 500 {
		require.NoError(t, s.insert(integerKey(uint64(n)), row(n+1), nil))
	}
	for _, set := range []struct{ first, max, wantFirst, wantMax int }{
		{0, 0, index.FirstFill, index.FullFill}, {100, 3, 100, 3}, {1, 0, 1, index.FullFill},
	} {
		var c index.Cursor
		b := index.Batch{First: set.first, Max: set.max}
		_, err := s.fill(index.Range{}, &c, &b)
		require.NoError(t, err)
		require.LessOrEqual(t, b.Len(), set.wantFirst)
		_, err = s.fill(index.Range{}, &c, &b)
		require.NoError(t, err)
		require.LessOrEqual(t, b.Len(), set.wantMax)
	}
}

func randomRanges(t T, f *fixture) {
	for _, space := range keySpaces() {
		m := &Model{}
		for range 400 {
			m.Insert(Entry{space.draw(f.rand), row(1 + f.rand.IntN(5))})
		}
		s := f.fillWith(m)
		for range 60 {
			require.NoError(t, s.walk(m, f.rand, randomRange(f.rand, space), 1+f.rand.IntN(20)), space.name)
		}
	}
}

func randomRange(rng *rand.Rand, space keySpace) index.Range {
	r := index.Range{Reverse: rng.IntN(2) == 0}
	if rng.IntN(3) > 0 {
		r.Lo = []byte(space.draw(rng))
	}
	if rng.IntN(3) > 0 {
		r.Hi = []byte(space.draw(rng))
	}
	return r
}

// resumeAfterChanges removes and inserts around the cursor between the fills.
func resumeAfterChanges(t T, f *fixture) {
	for _, space := range keySpaces() {
		m := &Model{}
		for range 200 {
			m.Insert(Entry{space.draw(f.rand), row(1 + f.rand.IntN(5))})
		}
		s := f.fillWith(m)
		for range 15 {
			var c index.Cursor
			r := randomRange(f.rand, space)
			for more := true; more; {
				b := index.Batch{First: 1 + f.rand.IntN(9), Max: 1 + f.rand.IntN(9)}
				var err error
				more, err = s.checkedFill(m, r, &c, &b)
				require.NoError(t, err, space.name)
				require.NoError(t, s.disturb(m, f.rand, &c, space))
			}
		}
		require.NoError(t, s.equals(m))
	}
}

// disturb removes the cursor's entry, inserts next to it, and changes the
// index elsewhere, each now and then, and not more in than out.
func (s *session) disturb(m *Model, rng *rand.Rand, c *index.Cursor, space keySpace) error {
	key, at := c.Entry()
	for _, e := range []Entry{
		{string(key), at},
		{string(key), row(1 + rng.IntN(5))},
		{string(key) + "\x00", row(1 + rng.IntN(5))},
		{space.draw(rng), row(1 + rng.IntN(5))},
		{space.draw(rng), row(1 + rng.IntN(5))},
	} {
		if rng.IntN(2) == 0 || e.Row == 0 {
			continue
		}
		if err := s.toggle(m, e); err != nil {
			return err
		}
	}
	return nil
}

// toggle inserts an absent entry and removes a present one.
func (s *session) toggle(m *Model, e Entry) error {
	if m.Insert(e) {
		return s.insert(e.Key, e.Row, nil)
	}
	m.Remove(e)
	removed, _, err := s.remove(e.Key, e.Row, true)
	if err == nil && !removed {
		err = fmt.Errorf("%v was not removed", e)
	}
	return err
}

func turnRound(t T, f *fixture) {
	m := edgeModel()
	s := f.fillWith(m)
	for range 100 {
		var c index.Cursor
		r := index.Range{Reverse: f.rand.IntN(2) == 0}
		for range 20 {
			b := index.Batch{First: 1 + f.rand.IntN(5), Max: 1 + f.rand.IntN(5)}
			_, err := s.checkedFill(m, r, &c, &b)
			require.NoError(t, err)
			r.Reverse = f.rand.IntN(2) == 0
		}
	}
}

func cursorAtAbsent(t T, f *fixture) {
	m := edgeModel()
	s := f.fillWith(m)
	for _, key := range edgeBounds(m) {
		for _, n := range []int{1, 5, 1000} {
			for _, r := range []index.Range{{}, {Reverse: true}, {Lo: []byte("a"), Hi: []byte("b")}, {Lo: []byte("a"), Hi: []byte("b"), Reverse: true}} {
				var c index.Cursor
				c.Set(key, row(n))
				_, err := s.checkedFill(m, r, &c, &index.Batch{})
				require.NoError(t, err)
			}
		}
	}
}

func deleteByScanning(t T, f *fixture) {
	for _, reverse := range []bool{false, true} {
		m := &Model{}
		for n := range 1000 {
			m.Insert(Entry{integerKey(f.rand.Uint64N(700)), row(n + 1)})
		}
		s := f.fillWith(m)
		var c index.Cursor
		for more := true; more; {
			var b index.Batch
			var err error
			more, err = s.checkedFill(m, index.Range{Reverse: reverse}, &c, &b)
			require.NoError(t, err)
			for _, e := range entries(&b) {
				require.NoError(t, s.toggle(m, e))
			}
		}
		require.Zero(t, m.Len())
		require.NoError(t, s.equals(m))
	}
}
