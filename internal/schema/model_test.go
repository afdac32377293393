package schema_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/schema"
)

func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func layoutOf(t testing.TB, def *schema.Table) *schema.Layout {
	l, err := schema.NewLayout(def)
	require.NoError(t, err)
	return l
}

// randomTable has up to 12 columns and up to 5 indexes over them.
func randomTable(r *rand.Rand) *schema.Table {
	def := &schema.Table{Name: "random"}
	for i := range 1 + r.IntN(12) {
		def.Columns = append(def.Columns, schema.Column{
			Name:     fmt.Sprintf("c%d", i),
			Type:     schema.Bool + schema.Type(r.IntN(int(schema.Time))),
			Nullable: i > 0 && r.IntN(3) == 0,
		})
	}
	var keys []int
	for _, c := range r.Perm(len(def.Columns)) {
		if !def.Columns[c].Nullable && len(keys) < 3 {
			keys = append(keys, c)
		}
	}
	def.Indexes = []schema.Index{{Name: schema.PrimaryIndex, Columns: keys, Unique: true}}
	for i := range r.IntN(5) {
		columns := r.Perm(len(def.Columns))[:1+r.IntN(len(def.Columns))]
		def.Indexes = append(def.Indexes, schema.Index{Name: fmt.Sprintf("i%d", i), Columns: columns, Unique: r.IntN(2) == 0})
	}
	return def
}

// edges are values of each type that encodings get wrong first.
var edges = map[schema.Type][]any{
	schema.Bool:    {false, true},
	schema.Int8:    {int8(math.MinInt8), int8(-1), int8(0), int8(math.MaxInt8)},
	schema.Int16:   {int16(math.MinInt16), int16(-1), int16(0), int16(math.MaxInt16)},
	schema.Int32:   {int32(math.MinInt32), int32(-1), int32(0), int32(math.MaxInt32)},
	schema.Int64:   {int64(math.MinInt64), int64(-1), int64(0), int64(math.MaxInt64)},
	schema.Uint8:   {uint8(0), uint8(0x80), uint8(math.MaxUint8)},
	schema.Uint16:  {uint16(0), uint16(0x8000), uint16(math.MaxUint16)},
	schema.Uint32:  {uint32(0), uint32(1 << 31), uint32(math.MaxUint32)},
	schema.Uint64:  {uint64(0), uint64(1 << 63), uint64(math.MaxUint64)},
	schema.Float32: {float32(math.Inf(-1)), float32(-1.5), float32(math.Copysign(0, -1)), float32(0), float32(math.Inf(1)), math.Float32frombits(0xFFC00001)},
	schema.Float64: {math.Inf(-1), -1.5, math.Copysign(0, -1), 0.0, math.MaxFloat64, math.Inf(1), math.NaN()},
	schema.String:  {"", "\x00", "\x00\xff", "a", "a\x00", "a\x00b", "ab", "\xff\xff", "käse"},
	schema.Bytes:   {[]byte{}, []byte{0}, []byte{0, 1}, []byte("a"), []byte("a\x00\x00"), []byte{0xFF}},
	schema.Time: {time.Time{}, time.Unix(-1, 999_999_999).UTC(), time.Unix(0, 0).UTC(), time.Date(-100, 1, 1, 0, 0, 0, 5, time.UTC),
		time.Date(30000, 1, 1, 0, 0, 0, 0, time.UTC)},
}

func randomValue(r *rand.Rand, c schema.Column) any {
	if c.Nullable && r.IntN(3) == 0 {
		return nil
	}
	if list := edges[c.Type]; r.IntN(2) == 0 {
		return list[r.IntN(len(list))]
	}
	bits := r.Uint64() >> r.IntN(64)
	switch c.Type {
	case schema.Bool:
		return bits&1 == 1
	case schema.Int8:
		return int8(bits)
	case schema.Int16:
		return int16(bits)
	case schema.Int32:
		return int32(bits)
	case schema.Int64:
		return int64(bits)
	case schema.Uint8:
		return uint8(bits)
	case schema.Uint16:
		return uint16(bits)
	case schema.Uint32:
		return uint32(bits)
	case schema.Uint64:
		return bits
	case schema.Float32:
		return math.Float32frombits(uint32(bits))
	case schema.Float64:
		return math.Float64frombits(bits)
	case schema.String:
		return string(randomBytes(r))
	case schema.Bytes:
		return randomBytes(r)
	default:
		return time.Unix(int64(r.Uint64())>>(20+r.IntN(40)), r.Int64N(1e9)).UTC()
	}
}

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(4)*r.IntN(30))
	for i := range b {
		b[i] = byte(r.Uint32()) * byte(r.IntN(2))
	}
	return b
}

func randomRow(r *rand.Rand, def *schema.Table) []any {
	vals := make([]any, len(def.Columns))
	for i, c := range def.Columns {
		vals[i] = randomValue(r, c)
	}
	return vals
}

func pick(vals []any, columns []int) []any {
	out := make([]any, len(columns))
	for i, c := range columns {
		out[i] = vals[c]
	}
	return out
}

// compareValues is the order of values that keys must have.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(rank(a != nil), rank(b != nil))
	}
	switch x := a.(type) {
	case bool:
		return cmp.Compare(rank(x), rank(b.(bool)))
	case string:
		return cmp.Compare(x, b.(string))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	case time.Time:
		return x.Compare(b.(time.Time))
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case va.CanInt():
		return cmp.Compare(va.Int(), vb.Int())
	case va.CanUint():
		return cmp.Compare(va.Uint(), vb.Uint())
	}
	x, y := va.Float(), vb.Float()
	if x != x || y != y {
		return cmp.Compare(rank(x != x), rank(y != y))
	}
	return cmp.Compare(x, y)
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// requireValues compares rows bit by bit: NaN equals NaN, −0 is not +0.
func requireValues(t testing.TB, want, got []any) {
	t.Helper()
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.IsType(t, want[i], got[i], "column %d", i)
		require.Equal(t, bitsOf(want[i]), bitsOf(got[i]), "column %d", i)
	}
}

func bitsOf(v any) any {
	switch x := v.(type) {
	case float32:
		return math.Float32bits(x)
	case float64:
		return math.Float64bits(x)
	}
	return v
}

// zeroOf is what a column reads as in a row that was written without it.
func zeroOf(c schema.Column) any {
	switch {
	case c.Nullable:
		return nil
	case c.Type == schema.Bytes:
		return []byte{}
	case c.Type == schema.Time:
		return time.Time{}
	}
	return reflect.Zero(reflect.TypeOf(edges[c.Type][0])).Interface()
}

func dropIndexesBeyond(def *schema.Table, columns int) []schema.Index {
	return slices.DeleteFunc(slices.Clone(def.Indexes), func(x schema.Index) bool { return slices.Max(x.Columns) >= columns })
}
