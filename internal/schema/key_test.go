package schema_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
)

func TestKeysAgree(t *testing.T) {
	r := newRand(t)
	for range 300 {
		def := randomTable(r)
		l := layoutOf(t, def)
		vals := randomRow(r, def)
		row, err := l.AppendRow(nil, vals)
		require.NoError(t, err)
		requireKeys(t, l, row, vals)
	}
}

// TestKeyOrder compares keys of two rows with the order of their values, and
// with that injectivity.
func TestKeyOrder(t *testing.T) {
	r := newRand(t)
	for range 2000 {
		def := randomTable(r)
		l := layoutOf(t, def)
		a, b := randomRow(r, def), randomRow(r, def)
		rowA, err := l.AppendRow(nil, a)
		require.NoError(t, err)
		for i, x := range def.Indexes {
			// Share the beginning of the key, so that later columns decide.
			for _, c := range x.Columns[:r.IntN(len(x.Columns))] {
				b[c] = a[c]
			}
			rowB, err := l.AppendRow(nil, b)
			require.NoError(t, err)
			want := 0
			for j := 0; want == 0 && j < len(x.Columns); j++ {
				want = compareValues(a[x.Columns[j]], b[x.Columns[j]])
			}
			ka, kb := l.AppendKey(nil, i, rowA), l.AppendKey(nil, i, rowB)
			require.Equal(t, want, bytes.Compare(ka, kb), "%v %v", pick(a, x.Columns), pick(b, x.Columns))
			require.Equal(t, want == 0, l.KeyMatches(i, rowA, kb))
		}
	}
}

func TestKeyPrefix(t *testing.T) {
	r := newRand(t)
	for range 500 {
		def := randomTable(r)
		l := layoutOf(t, def)
		vals := randomRow(r, def)
		for i, x := range def.Indexes {
			keyVals := pick(vals, x.Columns)
			key, err := l.AppendKeyValues(nil, i, keyVals, true)
			require.NoError(t, err)
			for n := range keyVals {
				prefix, err := l.AppendKeyValues(nil, i, keyVals[:n], true)
				require.NoError(t, err)
				require.True(t, bytes.HasPrefix(key, prefix))
				_, err = l.AppendKeyValues(nil, i, keyVals[:n], false)
				require.ErrorIs(t, err, fault.ErrInvalidQuery)
			}
			_, err = l.AppendKeyValues(nil, i, append(keyVals, 1), true)
			require.ErrorIs(t, err, fault.ErrInvalidQuery)
		}
	}
}

func keyTable() *schema.Table {
	return &schema.Table{
		Name: "t",
		Columns: []schema.Column{
			{Name: "id", Type: schema.Int64}, {Name: "name", Type: schema.String}, {Name: "raw", Type: schema.Bytes, Nullable: true},
			{Name: "ok", Type: schema.Bool}, {Name: "at", Type: schema.Time}, {Name: "f32", Type: schema.Float32},
			{Name: "f64", Type: schema.Float64}, {Name: "small", Type: schema.Uint8, Nullable: true}, {Name: "i8", Type: schema.Int8},
		},
		Indexes: []schema.Index{
			{Name: "primary", Columns: []int{0}, Unique: true},
			{Name: "all", Columns: []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
			{Name: "raw", Columns: []int{2, 1}},
			{Name: "name", Columns: []int{1}},
		},
	}
}

func TestFormatKey(t *testing.T) {
	l := layoutOf(t, keyTable())
	at := time.Date(1969, 12, 31, 23, 59, 59, 5, time.UTC)
	for _, tc := range []struct {
		index int
		vals  []any
		want  string
	}{
		{0, []any{-7}, `(-7)`},
		{1, []any{1, "abc"}, `(1, "abc")`},
		{1, []any{1, "a\x00\"", []byte{0, 0xFF}, true, at, float32(0.1), math.Inf(-1), 255, -128},
			`(1, "a\x00\"", 0x00ff, true, 1969-12-31T23:59:59.000000005Z, 0.1, -Inf, 255, -128)`},
		{1, []any{1, "", nil, false, time.Time{}, float32(math.NaN()), 1e100, nil, 0}, `(1, "", NULL, false, 0001-01-01T00:00:00Z, NaN, 1e+100, NULL, 0)`},
		{2, nil, `()`},
		{2, []any{nil}, `(NULL)`},
	} {
		key, err := l.AppendKeyValues(nil, tc.index, tc.vals, true)
		require.NoError(t, err)
		require.Equal(t, tc.want, l.FormatKey(tc.index, key))
	}
	require.Equal(t, `(?0102)`, l.FormatKey(0, []byte{1, 2}))
	require.Equal(t, `(0, ?61)`, l.FormatKey(1, append([]byte{0x80, 0, 0, 0, 0, 0, 0, 0}, 'a')))
	require.Equal(t, `(0, ?61)`, l.FormatKey(0, append([]byte{0x80, 0, 0, 0, 0, 0, 0, 0}, 'a')))
}

func TestKeyStarting(t *testing.T) {
	l := layoutOf(t, keyTable())
	key := func(index int, vals ...any) []byte {
		k, err := l.AppendKeyValues(nil, index, vals, true)
		require.NoError(t, err)
		return k
	}
	start, err := l.AppendKeyStarting([]byte("x"), 1, []any{1, "a\x00b"})
	require.NoError(t, err)
	require.Equal(t, byte('x'), start[0])
	require.True(t, bytes.HasPrefix(key(1, 1, "a\x00bc", nil), start[1:]))
	require.True(t, bytes.HasPrefix(key(1, 1, "a\x00b", nil), start[1:]))
	require.False(t, bytes.HasPrefix(key(1, 1, "a\x00", nil), start[1:]))
	require.False(t, bytes.HasPrefix(key(1, 2, "a\x00b", nil), start[1:]))

	start, err = l.AppendKeyStarting(nil, 2, []any{[]byte{}})
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(key(2, []byte("z")), start))
	require.False(t, bytes.HasPrefix(key(2, nil), start), "NULL begins with nothing")

	for _, vals := range [][]any{{}, {1, 2}, {"a", nil}, {nil}} {
		_, err = l.AppendKeyStarting(nil, 3, vals)
		require.Error(t, err, "%v", vals)
	}
	_, err = l.AppendKeyStarting(nil, 0, []any{1})
	requireSchemaError(t, err, "id", "no beginning of a value of type int64")
}

func TestCheckKeySize(t *testing.T) {
	def := keyTable()
	require.NoError(t, schema.CheckKeySize(def, 3, make([]byte, schema.MaxKeySize)))
	err := schema.CheckKeySize(def, 3, make([]byte, schema.MaxKeySize+1))
	var e *fault.TooLarge
	require.ErrorAs(t, err, &e)
	require.Equal(t, &fault.TooLarge{Kind: fault.ErrKeyTooLarge, Table: "t", Index: "name", Size: 4097, Limit: 4096}, e)
}

// TestHotPathsDoNotAllocate covers keys that are longer than any buffer on the
// stack, too.
func TestHotPathsDoNotAllocate(t *testing.T) {
	l := layoutOf(t, keyTable())
	row, err := l.AppendRow(nil, []any{1, strings.Repeat("x\x00", 900), []byte("r"), true, time.Now(), float32(1), 2.0, nil, 1})
	require.NoError(t, err)
	buf := make([]byte, 0, 8192)
	id := int64(1 << 40)
	for index := range l.Table().Indexes {
		key := l.AppendKey(nil, index, row)
		allocs := testing.AllocsPerRun(100, func() {
			buf = l.AppendKey(buf[:0], index, row)
			if !l.KeyMatches(index, row, key) || l.KeyHasNull(index, row) != (index == 1) {
				t.Error("wrong")
			}
			buf, _ = l.AppendKeyValues(buf[:0], 0, []any{id}, false)
			if l.Check(row) != nil {
				t.Error("wrong")
			}
		})
		require.Zero(t, allocs)
	}
}
