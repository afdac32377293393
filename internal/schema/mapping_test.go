package schema_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
)

type (
	status   uint8
	label    string
	stamp    time.Time
	blob     []byte
	audit    struct{ Created, changed time.Time }
	Location struct {
		audit
		Lat, Lon float64
	}
)

// everything has each field type in each way of being NULL.
type everything struct {
	Bool      bool
	Int       int `rekindle:",pk=2"`
	Int8      int8
	pad1      [3]byte
	Int16     int16
	Int32     int32
	Int64     int64 `rekindle:",pk=1,index"`
	Uint      uint
	Uint8     uint8 `rekindle:",index=mixed:1"`
	Uint16    uint16
	Uint32    uint32
	Uint64    uint64
	Float32   float32
	Float64   float64
	String    string `rekindle:",index=mixed:3,unique"`
	Bytes     []byte
	Time      time.Time
	Skipped   chan int `rekindle:"-"`
	Status    status   `rekindle:"state"`
	Label     label    `rekindle:",index=mixed:2"`
	Stamp     stamp
	Blob      blob
	Location  // flattened
	PBool     *bool
	PInt      *int `rekindle:",index"`
	PInt16    *int16
	PInt32    *int32
	PUint64   *uint64
	PFloat64  *float64
	PString   *string `rekindle:",unique"`
	PBytes    *[]byte `rekindle:",index=mixed:4"`
	PTime     *time.Time
	PStatus   *status
	NBool     schema.Null[bool]
	NUint     schema.Null[uint] `rekindle:",index"`
	NInt8     schema.Null[int8]
	NFloat32  schema.Null[float32]
	NString   schema.Null[string]
	NBytes    schema.Null[[]byte]
	NTime     schema.Null[time.Time] `rekindle:",index=mixed:5"`
	NLabel    schema.Null[label]
	unmapped  int
	LastField bool
}

// fill sets the fields of a struct to random values and returns the values
// that the row API has for its columns.
func fill(r *rand.Rand, v reflect.Value, def *schema.Table) []any {
	var vals []any
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			sf := v.Type().Field(i)
			fv := reflect.NewAt(sf.Type, unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
			switch {
			case sf.Anonymous:
				walk(fv)
			case sf.IsExported() && sf.Tag.Get("rekindle") != "-":
				vals = append(vals, fillField(r, fv, def.Columns[len(vals)]))
			}
		}
	}
	walk(v)
	return vals
}

func fillField(r *rand.Rand, fv reflect.Value, c schema.Column) any {
	val := randomValue(r, c)
	target := fv
	switch {
	case fv.Kind() == reflect.Pointer:
		fv.SetZero()
		if val == nil {
			return nil
		}
		fv.Set(reflect.New(fv.Type().Elem()))
		target = fv.Elem()
	case c.Nullable:
		fv.Field(1).SetBool(val != nil)
		target = fv.Field(0)
	}
	if val == nil { // a Null that is not valid may hold anything
		val = randomValue(r, schema.Column{Type: c.Type})
		target.Set(reflect.ValueOf(val).Convert(target.Type()))
		return nil
	}
	target.Set(reflect.ValueOf(val).Convert(target.Type()))
	switch target.Kind() { // these may have cut the value to 32 bits
	case reflect.Int:
		return target.Int()
	case reflect.Uint:
		return target.Uint()
	}
	return val
}

func TestMappingSchema(t *testing.T) {
	def, m := mapOf[everything](t)
	require.Same(t, def, m.Layout().Table())
	require.NoError(t, def.Validate())
	var names []string
	for _, c := range def.Columns {
		names = append(names, c.Name+" "+c.Type.String()+map[bool]string{true: "?"}[c.Nullable])
	}
	require.Equal(t, strings.Fields(`bool·bool int·int64 int8·int8 int16·int16 int32·int32 int64·int64 uint·uint64 uint8·uint8 uint16·uint16
		uint32·uint32 uint64·uint64 float32·float32 float64·float64 string·string bytes·bytes time·time state·uint8 label·string stamp·time
		blob·bytes created·time lat·float64 lon·float64 p_bool·bool? p_int·int64? p_int16·int16? p_int32·int32? p_uint64·uint64?
		p_float64·float64? p_string·string? p_bytes·bytes? p_time·time? p_status·uint8? n_bool·bool? n_uint·uint64? n_int8·int8?
		n_float32·float32? n_string·string? n_bytes·bytes? n_time·time? n_label·string? last_field·bool`),
		strings.Fields(strings.ReplaceAll(strings.Join(names, "\n"), " ", "·")))
	require.Equal(t, []schema.Index{
		{Name: "primary", Columns: []int{5, 1}, Unique: true},
		{Name: "int64", Columns: []int{5}},
		{Name: "mixed", Columns: []int{7, 17, 13, 30, 39}},
		{Name: "string", Columns: []int{13}, Unique: true},
		{Name: "p_int", Columns: []int{24}},
		{Name: "p_string", Columns: []int{29}, Unique: true},
		{Name: "n_uint", Columns: []int{34}},
	}, def.Indexes)
}

// TestMappingEqualsLayout compares the two ways to rows and keys.
func TestMappingEqualsLayout(t *testing.T) {
	r := newRand(t)
	def, m := mapOf[everything](t)
	dirty := bytes.Repeat([]byte{0xA5}, 4096)
	for range 2000 {
		var v everything
		vals := fill(r, reflect.ValueOf(&v).Elem(), def)
		want, err := m.Layout().AppendRow([]byte("before"), vals)
		require.NoError(t, err)
		got, err := m.AppendRow(append(dirty[:0], "before"...), unsafe.Pointer(&v))
		require.NoError(t, err)
		require.Equal(t, want, got)
		row := got[len("before"):]
		require.NoError(t, m.Layout().Check(row))
		for i := range def.Indexes {
			require.Equal(t, m.Layout().AppendKey([]byte("x"), i, row), m.AppendKey([]byte("x"), i, unsafe.Pointer(&v)))
		}
		requireDecodes(t, r, m, row, vals)
	}
}

// requireDecodes decodes row over a struct full of other values and expects
// vals in it, with nothing left over.
func requireDecodes(t *testing.T, r *rand.Rand, m *schema.Mapping, row []byte, vals []any) {
	t.Helper()
	def := m.Layout().Table()
	var out everything
	fill(r, reflect.ValueOf(&out).Elem(), def)
	out.Skipped, out.unmapped, out.pad1, out.changed = make(chan int), 7, [3]byte{1, 2, 3}, time.Unix(9, 9)
	before := out
	require.NoError(t, m.DecodeRow(row, unsafe.Pointer(&out)))
	again, err := m.AppendRow(nil, unsafe.Pointer(&out))
	require.NoError(t, err)
	got, err := m.Layout().DecodeRow(again)
	require.NoError(t, err)
	requireValues(t, vals, got)
	require.Equal(t, before.Skipped, out.Skipped)
	require.Equal(t, []any{7, [3]byte{1, 2, 3}, before.changed}, []any{out.unmapped, out.pad1, out.changed})
	requireZeroNulls(t, reflect.ValueOf(out))
}

// requireZeroNulls checks that a Null that is not valid holds the zero value.
func requireZeroNulls(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		if f := v.Field(i); strings.HasPrefix(f.Type().Name(), "Null[") && !f.Field(1).Bool() {
			require.True(t, f.Field(0).IsZero(), v.Type().Field(i).Name)
		}
	}
}

type nullsBefore struct {
	ID  int64 `rekindle:",pk"`
	One string
}

type nullsAfter struct {
	ID    int64 `rekindle:",pk"`
	One   string
	Two   string
	Three []byte
	Four  time.Time
	Five  *int64 `rekindle:",index"`
	Six   schema.Null[string]
	Seven uint32 `rekindle:",index"`
}

// TestMappingShortRows reads rows of a struct that had fewer fields.
func TestMappingShortRows(t *testing.T) {
	_, before := mapOf[nullsBefore](t)
	_, after := mapOf[nullsAfter](t)
	row, err := before.AppendRow(nil, unsafe.Pointer(&nullsBefore{ID: 5, One: "one"}))
	require.NoError(t, err)
	seven := int64(7)
	out := nullsAfter{Two: "old", Three: []byte("old"), Four: time.Now(), Five: &seven, Six: schema.Null[string]{V: "old", Valid: true}, Seven: 7}
	require.NoError(t, after.DecodeRow(row, unsafe.Pointer(&out)))
	require.Equal(t, nullsAfter{ID: 5, One: "one"}, out)
	for i := range after.Layout().Table().Indexes {
		require.Equal(t, after.AppendKey(nil, i, unsafe.Pointer(&out)), after.Layout().AppendKey(nil, i, row))
	}
	// A row with more columns than the table belongs to another table.
	long, err := after.AppendRow(nil, unsafe.Pointer(&out))
	require.NoError(t, err)
	require.ErrorIs(t, before.DecodeRow(long, unsafe.Pointer(new(nullsBefore))), fault.ErrCorrupt)
}

// TestMappingCopies overwrites the row after decoding, decodes it again, and
// expects the first struct to keep its values.
func TestMappingCopies(t *testing.T) {
	r := newRand(t)
	def, m := mapOf[everything](t)
	for range 200 {
		var v everything
		vals := fill(r, reflect.ValueOf(&v).Elem(), def)
		row, err := m.AppendRow(nil, unsafe.Pointer(&v))
		require.NoError(t, err)
		var first, second everything
		require.NoError(t, m.DecodeRow(row, unsafe.Pointer(&first)))
		second = first
		require.NoError(t, m.DecodeRow(row, unsafe.Pointer(&second)))
		requireNoSharing(t, reflect.ValueOf(first), reflect.ValueOf(second))
		for i := range row {
			row[i] = ^row[i]
		}
		again, err := m.AppendRow(nil, unsafe.Pointer(&first))
		require.NoError(t, err)
		got, err := m.Layout().DecodeRow(again)
		require.NoError(t, err)
		requireValues(t, vals, got)
	}
}

// requireNoSharing checks that pointers and bytes of two structs are apart.
func requireNoSharing(t *testing.T, a, b reflect.Value) {
	t.Helper()
	for i := range a.NumField() {
		fa, fb := a.Field(i), b.Field(i)
		switch fa.Kind() {
		case reflect.Pointer:
			require.True(t, fa.IsNil() == fb.IsNil() && (fa.IsNil() || fa.Pointer() != fb.Pointer()), a.Type().Field(i).Name)
		case reflect.Slice:
			require.False(t, fa.IsNil())
			require.True(t, fa.Len() == 0 || fa.Pointer() != fb.Pointer(), a.Type().Field(i).Name)
		}
	}
}

func TestMappingNulls(t *testing.T) {
	type row struct {
		ID int64 `rekindle:",pk"`
		P  *[]byte
		B  []byte
		N  schema.Null[[]byte]
		S  *string
	}
	_, m := mapOf[row](t)
	empty := ""
	for _, tc := range []struct {
		in   row
		want []any
		out  row
	}{
		{row{}, []any{int64(0), nil, []byte{}, nil, nil}, row{B: []byte{}}},
		{row{P: new([]byte), N: schema.Null[[]byte]{Valid: true}, S: &empty}, []any{int64(0), []byte{}, []byte{}, []byte{}, ""},
			row{P: &[]byte{}, B: []byte{}, N: schema.Null[[]byte]{V: []byte{}, Valid: true}, S: &empty}},
		{row{N: schema.Null[[]byte]{V: []byte("ignored")}}, []any{int64(0), nil, []byte{}, nil, nil}, row{B: []byte{}}},
	} {
		b, err := m.AppendRow(nil, unsafe.Pointer(&tc.in))
		require.NoError(t, err)
		vals, err := m.Layout().DecodeRow(b)
		require.NoError(t, err)
		require.Equal(t, tc.want, vals)
		var out row
		require.NoError(t, m.DecodeRow(b, unsafe.Pointer(&out)))
		require.Equal(t, tc.out, out)
	}
}

func TestMappingAllocations(t *testing.T) {
	_, m := mapOf[everything](t)
	v := everything{String: "abc", Label: "label", Bytes: []byte("b")}
	buf := make([]byte, 0, 4096)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		buf, _ = m.AppendRow(buf[:0], unsafe.Pointer(&v))
		for i := range m.Layout().Table().Indexes {
			buf = m.AppendKey(buf, i, unsafe.Pointer(&v))
		}
	}))
	row, err := m.AppendRow(nil, unsafe.Pointer(&v))
	require.NoError(t, err)
	var out everything
	// The two strings, the bytes; empty bytes and NULL cost nothing.
	require.Equal(t, 3.0, testing.AllocsPerRun(100, func() { _ = m.DecodeRow(row, unsafe.Pointer(&out)) }))
}

// TestShortInt covers int and uint on 32-bit platforms; it runs everywhere.
func TestShortInt(t *testing.T) {
	type stored struct {
		ID int64 `rekindle:",pk"`
		U  uint64
	}
	type native struct {
		ID int `rekindle:",pk"`
		U  uint
	}
	_, wide := mapOf[stored](t)
	_, m := mapOf[native](t)
	require.NoError(t, m.Layout().Table().CompatibleWith(wide.Layout().Table()))
	for _, v := range []stored{{-5, 5}, {math.MinInt32, math.MaxUint32}, {math.MaxInt32 + 1, 0}, {0, math.MaxUint32 + 1}, {math.MinInt64, math.MaxUint64}} {
		row, err := wide.AppendRow(nil, unsafe.Pointer(&v))
		require.NoError(t, err)
		var out native
		err = m.DecodeRow(row, unsafe.Pointer(&out))
		if int64(int(v.ID)) != v.ID || uint64(uint(v.U)) != v.U {
			require.ErrorIs(t, err, fault.ErrSchema)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, native{int(v.ID), uint(v.U)}, out)
		back, err := m.AppendRow(nil, unsafe.Pointer(&out))
		require.NoError(t, err)
		require.Equal(t, row, back)
		require.Equal(t, wide.AppendKey(nil, 0, unsafe.Pointer(&v)), m.AppendKey(nil, 0, unsafe.Pointer(&out)))
	}
}

// TestDecodeSurvivesGC keeps decoded values across collections: memory that
// the collector cannot see would be reused.
func TestDecodeSurvivesGC(t *testing.T) {
	type row struct {
		ID int64 `rekindle:",pk"`
		S  *string
		B  *[]byte
		N  schema.Null[string]
		T  *time.Time
	}
	_, m := mapOf[row](t)
	text, data, at := strings.Repeat("s", 100), bytes.Repeat([]byte{1}, 100), time.Unix(5, 5).UTC()
	b, err := m.AppendRow(nil, unsafe.Pointer(&row{1, &text, &data, schema.Null[string]{V: text, Valid: true}, &at}))
	require.NoError(t, err)
	list := make([]*row, 20_000)
	for i := range list {
		list[i] = new(row)
		require.NoError(t, m.DecodeRow(b, unsafe.Pointer(list[i])))
	}
	for _, v := range list {
		if *v.S != text || !bytes.Equal(*v.B, data) || v.N.V != text || !v.T.Equal(at) {
			t.Fatal("decoded values changed")
		}
	}
}
