package schema_test

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
)

func TestRowRoundTrip(t *testing.T) {
	r := newRand(t)
	for range 500 {
		def := randomTable(r)
		l := layoutOf(t, def)
		for range 10 {
			vals := randomRow(r, def)
			buf, err := l.AppendRow([]byte("before"), vals)
			require.NoError(t, err)
			require.Equal(t, "before", string(buf[:6]))
			row := buf[6:]
			require.NoError(t, l.Check(row), "%v % x", def.Columns, row)
			got, err := l.DecodeRow(row)
			require.NoError(t, err)
			requireValues(t, vals, got)
		}
	}
}

// TestRowIsDirtyBufferProof appends into a buffer that has old bytes.
func TestRowIsDirtyBufferProof(t *testing.T) {
	r := newRand(t)
	dirty := bytes.Repeat([]byte{0xA5}, 4096)
	for range 200 {
		def := randomTable(r)
		l := layoutOf(t, def)
		vals := randomRow(r, def)
		clean, err := l.AppendRow(nil, vals)
		require.NoError(t, err)
		again, err := l.AppendRow(dirty[:0], vals)
		require.NoError(t, err)
		require.Equal(t, clean, again)
	}
}

// TestShortRows reads rows that were written before columns were appended.
func TestShortRows(t *testing.T) {
	r := newRand(t)
	for range 500 {
		def := randomTable(r)
		need := slices.Max(def.Indexes[0].Columns) + 1
		n := need + r.IntN(len(def.Columns)-need+1)
		old := &schema.Table{Name: def.Name, Columns: def.Columns[:n], Indexes: dropIndexesBeyond(def, n)}
		vals := randomRow(r, old)
		row, err := layoutOf(t, old).AppendRow(nil, vals)
		require.NoError(t, err)

		l := layoutOf(t, def)
		require.NoError(t, l.Check(row))
		for _, c := range def.Columns[n:] {
			vals = append(vals, zeroOf(c))
		}
		got, err := l.DecodeRow(row)
		require.NoError(t, err)
		requireValues(t, vals, got)
		requireKeys(t, l, row, vals)
	}
}

// requireKeys checks all ways to a key against each other.
func requireKeys(t testing.TB, l *schema.Layout, row []byte, vals []any) {
	t.Helper()
	for i, x := range l.Table().Indexes {
		keyVals := pick(vals, x.Columns)
		want, err := l.AppendKeyValues([]byte("before"), i, keyVals, false)
		require.NoError(t, err)
		require.Equal(t, want, l.AppendKey([]byte("before"), i, row))
		key := want[len("before"):]
		require.True(t, l.KeyMatches(i, row, key))
		require.False(t, l.KeyMatches(i, row, append(bytes.Clone(key), 0)))
		for n := range key {
			require.False(t, l.KeyMatches(i, row, key[:n]), "%s cut at %d", x.Name, n)
			changed := bytes.Clone(key)
			changed[n] ^= 1 << (n % 8)
			require.False(t, l.KeyMatches(i, row, changed), "%s changed at %d", x.Name, n)
		}
		require.Equal(t, slices.Contains(keyVals, nil), l.KeyHasNull(i, row))
	}
}

func TestRowErrors(t *testing.T) {
	def := &schema.Table{
		Name:    "t",
		Columns: []schema.Column{{Name: "id", Type: schema.Int64}, {Name: "s", Type: schema.String, Nullable: true}},
		Indexes: []schema.Index{{Name: "primary", Columns: []int{0}, Unique: true}},
	}
	l := layoutOf(t, def)
	for _, tc := range []struct {
		vals   []any
		column string
		reason string
	}{
		{nil, "", "0 values for 2 columns"},
		{[]any{1}, "", "1 values for 2 columns"},
		{[]any{1, nil, 2}, "", "3 values for 2 columns"},
		{[]any{nil, "a"}, "id", "NULL, but the column is not nullable"},
		{[]any{"1", "a"}, "id", "value of type string, want int64"},
		{[]any{1, 'a'}, "s", "value of type int32, want string"},
	} {
		out, err := l.AppendRow([]byte("kept"), tc.vals)
		require.Equal(t, "kept", string(out))
		requireSchemaError(t, err, tc.column, tc.reason)
	}
}

func requireSchemaError(t testing.TB, err error, column, reason string) {
	t.Helper()
	var e *fault.Schema
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, fault.ErrSchema)
	require.Equal(t, column, e.Column, "%v", err)
	require.Equal(t, reason, e.Reason)
}

func TestConversions(t *testing.T) {
	type (
		myInt    int16
		myUint   uint8
		myString string
		myBytes  []byte
		myBool   bool
		myFloat  float32
	)
	now := time.Now()
	for _, tc := range []struct {
		typ  schema.Type
		in   any
		want any // nil: refused
	}{
		{schema.Int8, 127, int8(127)}, {schema.Int8, 128, nil}, {schema.Int8, -128, int8(-128)}, {schema.Int8, -129, nil},
		{schema.Int8, uint64(127), int8(127)}, {schema.Int8, uint64(128), nil}, {schema.Int16, uint16(1 << 15), nil},
		{schema.Int32, int64(1) << 31, nil}, {schema.Int64, uint64(1) << 63, nil}, {schema.Int64, uint64(1)<<63 - 1, int64(1<<63 - 1)},
		{schema.Uint8, 255, uint8(255)}, {schema.Uint8, 256, nil}, {schema.Uint8, -1, nil}, {schema.Uint64, -1, nil},
		{schema.Uint64, int8(1), uint64(1)}, {schema.Uint16, uint32(1 << 16), nil}, {schema.Uint32, uint(7), uint32(7)},
		{schema.Int64, myInt(-3), int64(-3)}, {schema.Uint64, myUint(3), uint64(3)}, {schema.Int8, myInt(300), nil},
		{schema.Int64, uintptr(1), nil}, {schema.Int64, true, nil}, {schema.Int64, 1.0, nil}, {schema.Int64, "1", nil},
		{schema.Bool, 1, nil}, {schema.Bool, -1, nil}, {schema.Bool, uint8(0), nil}, {schema.Bool, myBool(true), true},
		{schema.Float32, 0.5, float32(0.5)}, {schema.Float32, 0.1, nil}, {schema.Float32, 1e300, nil},
		{schema.Float32, math.NaN(), float32(math.NaN())}, {schema.Float32, math.Inf(-1), float32(math.Inf(-1))}, {schema.Float32, myFloat(2), float32(2)},
		{schema.Float64, float32(0.1), float64(float32(0.1))}, {schema.Float64, 1, nil}, {schema.Float64, -1, nil}, {schema.Float64, "x", nil},
		{schema.String, myString("x"), "x"}, {schema.String, []byte("x"), nil}, {schema.String, 1, nil}, {schema.String, -1, nil},
		{schema.Bytes, myBytes("x"), []byte("x")}, {schema.Bytes, "x", nil}, {schema.Bytes, []byte(nil), []byte{}}, {schema.Bytes, []int8{1}, nil},
		{schema.Time, now, now.Round(0).UTC()}, {schema.Time, 5, nil}, {schema.Time, -5, nil}, {schema.Time, &now, nil},
	} {
		l := layoutOf(t, &schema.Table{
			Name:    "t",
			Columns: []schema.Column{{Name: "c", Type: tc.typ}},
			Indexes: []schema.Index{{Name: "primary", Columns: []int{0}, Unique: true}},
		})
		row, err := l.AppendRow(nil, []any{tc.in})
		_, keyErr := l.AppendKeyValues(nil, 0, []any{tc.in}, false)
		if tc.want == nil {
			require.ErrorIs(t, err, fault.ErrSchema, "%v from %T %v", tc.typ, tc.in, tc.in)
			require.ErrorIs(t, keyErr, fault.ErrSchema)
			continue
		}
		require.NoError(t, err, "%v from %T %v", tc.typ, tc.in, tc.in)
		require.NoError(t, keyErr)
		got, err := l.DecodeRow(row)
		require.NoError(t, err)
		requireValues(t, []any{tc.want}, got)
	}
}

// TestDecodedValuesAreCopies overwrites the payload after decoding.
func TestDecodedValuesAreCopies(t *testing.T) {
	r := newRand(t)
	for range 100 {
		def := randomTable(r)
		l := layoutOf(t, def)
		vals := randomRow(r, def)
		row, err := l.AppendRow(nil, vals)
		require.NoError(t, err)
		got, err := l.DecodeRow(row)
		require.NoError(t, err)
		for i := range row {
			row[i] = ^row[i]
		}
		requireValues(t, vals, got)
	}
}
