package index_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

func TestRangeContains(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	for _, c := range []struct {
		r       index.Range
		in, out []string
	}{
		{index.Range{}, []string{"", "\x00", "\xff\xff"}, nil},
		{index.Range{Lo: b("b")}, []string{"b", "b\x00", "\xff"}, []string{"", "a\xff"}},
		{index.Range{Hi: b("b")}, []string{"", "a\xff"}, []string{"b", "b\x00"}},
		{index.Range{Lo: b("b"), Hi: b("c")}, []string{"b", "b\xff"}, []string{"a", "c", "c\x00"}},
		{index.Range{Lo: b("b"), Hi: b("b")}, nil, []string{"a", "b", "c"}},
		{index.Range{Lo: b("c"), Hi: b("b")}, nil, []string{"b", "bb", "c"}},
		{index.Range{Hi: b("")}, nil, []string{"", "\x00", "a"}},
	} {
		for _, key := range c.in {
			require.True(t, c.r.Contains(b(key)), "%q in %+v", key, c.r)
		}
		for _, key := range c.out {
			require.False(t, c.r.Contains(b(key)), "%q in %+v", key, c.r)
		}
	}
}

func TestCompare(t *testing.T) {
	require.Negative(t, index.Compare([]byte("a"), 9, []byte("b"), 1))
	require.Negative(t, index.Compare([]byte("a"), 1, []byte("a"), 2))
	require.Zero(t, index.Compare([]byte("a"), 1, []byte("a"), 1))
	require.Positive(t, index.Compare([]byte("a\x00"), 1, []byte("a"), 2))
	require.Positive(t, index.Compare(nil, rowid.Make(2, 1), nil, rowid.Make(1, 2)))
}

func TestCursorKeepsItsOwnKey(t *testing.T) {
	var c index.Cursor
	require.False(t, c.Started())
	key := []byte("key")
	c.Set(key, 7)
	clear(key)
	got, row := c.Entry()
	require.Equal(t, "key", string(got))
	require.Equal(t, rowid.ID(7), row)
	c.Set(got[:1], 8) // part of its own buffer
	got, _ = c.Entry()
	require.Equal(t, "k", string(got))
	c.Reset()
	require.False(t, c.Started())
	got, row = c.Entry()
	require.Empty(t, got)
	require.Zero(t, row)
}

func TestBatchEntries(t *testing.T) {
	var b index.Batch
	b.Begin(&index.Cursor{})
	b.Append([]byte("one"), 1)
	b.Append(nil, 2)
	b.AppendParts([]byte("thr"), []byte("ee"), 3)
	require.Equal(t, 3, b.Len())
	require.Equal(t, index.FirstFill-3, b.Room())
	for i, key := range []string{"one", "", "three"} {
		require.Equal(t, key, string(b.Key(i)))
		require.Equal(t, rowid.ID(i+1), b.Row(i))
	}
	require.Equal(t, []rowid.ID{1, 2, 3}, b.Rows())
	_ = append(b.Key(0), "overwrites nothing"...)
	require.Empty(t, b.Key(1))
	require.Equal(t, "three", string(b.Key(2)))

	var c index.Cursor
	b.Finish(&c)
	key, row := c.Entry()
	require.Equal(t, "three", string(key))
	require.Equal(t, rowid.ID(3), row)

	b.Reset()
	require.Zero(t, b.Len())
	b.Finish(&c)
	key, _ = c.Entry()
	require.Equal(t, "three", string(key), "an empty fill leaves the cursor")
}

func TestBatchFills(t *testing.T) {
	for _, set := range []struct{ first, max, wantFirst, wantMax int }{
		{0, 0, index.FirstFill, index.FullFill},
		{3, 5, 3, 5},
		{100, 0, 100, index.FullFill},
	} {
		b := index.Batch{First: set.first, Max: set.max}
		var c index.Cursor
		b.Begin(&c)
		require.Equal(t, set.wantFirst, b.Room())
		c.Set(nil, 1)
		b.Begin(&c)
		require.Equal(t, set.wantMax, b.Room())
		c.Reset()
		b.Begin(&c)
		require.Equal(t, set.wantFirst, b.Room(), "a batch serves several scans")
	}
}

func TestBatchReusesItsBuffers(t *testing.T) {
	var b index.Batch
	var c index.Cursor
	c.Set(nil, 1)
	fill := func() {
		b.Begin(&c)
		for b.Room() > 0 {
			b.Append([]byte("some key"), 1)
		}
	}
	fill()
	require.Zero(t, testing.AllocsPerRun(10, fill))
}

func TestBatchManglesWhatExpired(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("in test builds only")
	}
	var b index.Batch
	b.Append([]byte("key"), 1)
	key := b.Key(0)
	b.Reset()
	require.NotEqual(t, "key", string(key))
}
