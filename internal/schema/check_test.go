package schema_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
)

// hostileTable has columns of every kind, the primary key not at the front.
func hostileTable() *schema.Table {
	return &schema.Table{
		Name: "t",
		Columns: []schema.Column{
			{Name: "b", Type: schema.Bool, Nullable: true},
			{Name: "s", Type: schema.String},
			{Name: "id", Type: schema.Int64},
			{Name: "at", Type: schema.Time},
			{Name: "raw", Type: schema.Bytes, Nullable: true},
			{Name: "f", Type: schema.Float32, Nullable: true},
		},
		Indexes: []schema.Index{
			{Name: "primary", Columns: []int{2}, Unique: true},
			{Name: "all", Columns: []int{0, 1, 2, 3, 4, 5}},
			{Name: "s", Columns: []int{1}},
		},
	}
}

// hostile is the struct with hostileTable's columns.
type hostile struct {
	B   *bool
	S   string `rekindle:",index"`
	ID  int64  `rekindle:",pk"`
	At  stamp
	Raw schema.Null[[]byte]
	F   *float32
}

func TestCheckRefuses(t *testing.T) {
	l := layoutOf(t, hostileTable())
	// 0 count, 2 bitmap, 3 b, 4 id, 12 at, 24 f, 28 end of s, 32 end of raw, 36 data "sss" "rr"
	good, err := l.AppendRow(nil, []any{true, "sss", 7, edges[schema.Time][1], []byte("rr"), float32(1)})
	require.NoError(t, err)
	require.NoError(t, l.Check(good))
	require.Len(t, good, 41)
	nulls, err := l.AppendRow(nil, []any{nil, "sss", 7, edges[schema.Time][1], nil, nil})
	require.NoError(t, err)
	set := func(row []byte, at int, v ...byte) []byte {
		row = bytes.Clone(row)
		copy(row[at:], v)
		return row
	}
	for name, row := range map[string][]byte{
		"empty":              {},
		"half a count":       {6},
		"no columns":         {0, 0},
		"before primary key": {2, 0, 0, 0, 0, 0, 0, 0, 0},
		"too many columns":   set(good, 0, 7),
		"cut":                good[:35],
		"cut data":           good[:40],
		"trailing byte":      append(bytes.Clone(good), 0),
		"unused bitmap bit":  set(good, 2, 8),
		"NULL with value":    set(good, 2, 1),
		"NULL with bytes":    set(good, 2, 2),
		"NULL with float":    set(good, 2, 4),
		"value of a NULL":    set(nulls, 3, 1),
		"bool 2":             set(good, 3, 2),
		"1e9 nanoseconds":    set(good, 20, 0x00, 0xCA, 0x9A, 0x3B),
		"end beyond":         set(good, 32, 6),
		"end before":         set(good, 32, 2),
		"last end short":     set(good, 32, 4),
		"huge end":           set(good, 28, 0xFF, 0xFF, 0xFF, 0xFF),
	} {
		require.ErrorIs(t, l.Check(row), fault.ErrCorrupt, name)
		_, err := l.DecodeRow(row)
		require.ErrorIs(t, err, fault.ErrCorrupt, name)
	}
}

// TestCheckMutations changes single bits and lengths of good rows: what Check
// lets pass is a canonical row.
func TestCheckMutations(t *testing.T) {
	r := newRand(t)
	for range 300 {
		def := randomTable(r)
		l := layoutOf(t, def)
		row, err := l.AppendRow(nil, randomRow(r, def))
		require.NoError(t, err)
		for range 30 {
			bad := bytes.Clone(row)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			requireCanonical(t, l, bad)
			requireCanonical(t, l, row[:r.IntN(len(row))])
		}
	}
}

// TestMappingMutations does the same to the rows of a struct: decoding them
// is safe and gives a good row again, or an error.
func TestMappingMutations(t *testing.T) {
	r := newRand(t)
	def, m := mapOf[hostile](t)
	for range 5000 {
		row, err := m.Layout().AppendRow(nil, randomRow(r, def))
		require.NoError(t, err)
		row[r.IntN(len(row))] ^= 1 << r.IntN(8)
		row = row[:len(row)-r.IntN(2)*r.IntN(len(row))]
		requireSafe(t, m, row)
	}
}

// requireSafe checks what Mapping.DecodeRow makes of any bytes.
func requireSafe(t testing.TB, m *schema.Mapping, row []byte) {
	t.Helper()
	var out hostile
	if err := m.DecodeRow(row, unsafe.Pointer(&out)); err != nil {
		require.ErrorIs(t, err, fault.ErrCorrupt)
		require.Error(t, m.Layout().Check(row))
		return
	}
	again, err := m.AppendRow(nil, unsafe.Pointer(&out))
	require.NoError(t, err)
	require.NoError(t, m.Layout().Check(again))
	if m.Layout().Check(row) == nil && int(row[0]) == len(m.Layout().Table().Columns) {
		require.Equal(t, row, again)
	}
}

// requireCanonical checks that a row that Check accepts is the row that
// AppendRow writes for its values, and that every reader gets along with it.
func requireCanonical(t testing.TB, l *schema.Layout, row []byte) {
	t.Helper()
	vals, err := l.DecodeRow(row)
	if l.Check(row) != nil {
		require.ErrorIs(t, err, fault.ErrCorrupt)
		return
	}
	require.NoError(t, err)
	def := l.Table()
	n := int(binary.LittleEndian.Uint16(row))
	old := &schema.Table{Name: def.Name, Columns: def.Columns[:n], Indexes: dropIndexesBeyond(def, n)}
	again, err := layoutOf(t, old).AppendRow(nil, vals[:n])
	require.NoError(t, err)
	require.Equal(t, row, again)
	for i, x := range def.Indexes {
		key := l.AppendKey(nil, i, row)
		require.True(t, l.KeyMatches(i, row, key))
		require.Equal(t, slices.Contains(pick(vals, x.Columns), nil), l.KeyHasNull(i, row))
	}
}

func FuzzRow(f *testing.F) {
	def, m := mapOf[hostile](f)
	require.Equal(f, hostileTable().Columns, def.Columns)
	l := layoutOf(f, hostileTable())
	r := newRand(f)
	for range 50 {
		row, err := l.AppendRow(nil, randomRow(r, def))
		require.NoError(f, err)
		f.Add(row)
	}
	short := &schema.Table{Name: "t", Columns: def.Columns[:3], Indexes: def.Indexes[:1]}
	row, err := layoutOf(f, short).AppendRow(nil, []any{nil, "x", 1})
	require.NoError(f, err)
	f.Add(row)
	f.Fuzz(func(t *testing.T, row []byte) {
		requireCanonical(t, l, row)
		requireSafe(t, m, row)
	})
}

// FuzzKey: matching and printing a key of any bytes is safe, and only the
// row's own key matches.
func FuzzKey(f *testing.F) {
	l := layoutOf(f, hostileTable())
	r := newRand(f)
	for range 20 {
		row, err := l.AppendRow(nil, randomRow(r, l.Table()))
		require.NoError(f, err)
		for i := range l.Table().Indexes {
			f.Add(row, l.AppendKey(nil, i, row))
		}
	}
	f.Fuzz(func(t *testing.T, row, key []byte) {
		for i := range l.Table().Indexes {
			require.NotEmpty(t, l.FormatKey(i, key))
			if l.Check(row) == nil {
				require.Equal(t, bytes.Equal(key, l.AppendKey(nil, i, row)), l.KeyMatches(i, row, key))
			}
		}
	})
}
