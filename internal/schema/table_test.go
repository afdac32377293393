package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/goldentest"
	"github.com/rekindledb/rekindle/internal/schema"
)

func usersTable() *schema.Table {
	return &schema.Table{
		Name: "users",
		Columns: []schema.Column{
			{Name: "id", Type: schema.Int64},
			{Name: "email", Type: schema.String},
			{Name: "born", Type: schema.Time, Nullable: true},
		},
		Indexes: []schema.Index{
			{Name: "primary", Columns: []int{0}, Unique: true},
			{Name: "email", Columns: []int{1}, Unique: true},
			{Name: "born", Columns: []int{2, 1}},
		},
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, usersTable().Validate())
	long := strings.Repeat("n", 256)
	for _, tc := range []struct {
		change func(*schema.Table)
		column string
		reason string
	}{
		{func(d *schema.Table) { d.Name = "" }, "", "empty table name"},
		{func(d *schema.Table) { d.Name = long }, "", "table name of 256 bytes, limit 255"},
		{func(d *schema.Table) { d.Name = "a\xff" }, "", `table name "a\xff" is not UTF-8`},
		{func(d *schema.Table) { d.Name = "a\n" }, "", `table name "a\n" has a control character`},
		{func(d *schema.Table) { d.Columns = nil }, "", "no columns"},
		{func(d *schema.Table) { d.Columns = make([]schema.Column, 1025) }, "", "1025 columns, limit 1024"},
		{func(d *schema.Table) { d.Columns[1].Name = "" }, "", "empty column name"},
		{func(d *schema.Table) { d.Columns[1].Name = "\x00" }, "\x00", `column name "\x00" has a control character`},
		{func(d *schema.Table) { d.Columns[1].Name = "id" }, "id", "two columns have this name"},
		{func(d *schema.Table) { d.Columns[1].Type = 0 }, "email", "unknown column type 0"},
		{func(d *schema.Table) { d.Columns[1].Type = schema.Time + 1 }, "email", "unknown column type 15"},
		{func(d *schema.Table) { d.Indexes = nil }, "", "no primary key"},
		{func(d *schema.Table) { d.Indexes[0].Name = "pk" }, "", "no primary key"},
		{func(d *schema.Table) { d.Indexes = append(d.Indexes, make([]schema.Index, 62)...) }, "", "65 indexes, limit 64"},
		{func(d *schema.Table) { d.Indexes[2].Name = "" }, "", "empty index name"},
		{func(d *schema.Table) { d.Indexes[2].Name = "\u0085" }, "", `index name "\u0085" has a control character`},
		{func(d *schema.Table) { d.Indexes[2].Name = "email" }, "", `two indexes are named "email"`},
		{func(d *schema.Table) { d.Indexes[2].Name = "primary" }, "", `two indexes are named "primary"`},
		{func(d *schema.Table) { d.Indexes[2].Columns = nil }, "", `index "born" has no columns`},
		{func(d *schema.Table) { d.Indexes[2].Columns[1] = 3 }, "", `index "born" has column 3 of 3`},
		{func(d *schema.Table) { d.Indexes[2].Columns[1] = -1 }, "", `index "born" has column -1 of 3`},
		{func(d *schema.Table) { d.Indexes[2].Columns[1] = 2 }, "born", `index "born" has the column twice`},
		{func(d *schema.Table) { d.Indexes[0].Unique = false }, "", "the primary key is not unique"},
		{func(d *schema.Table) { d.Indexes[0].Columns[0] = 2 }, "born", "a primary key column is nullable"},
	} {
		def := usersTable()
		tc.change(def)
		requireSchemaError(t, def.Validate(), tc.column, tc.reason)
		l, err := schema.NewLayout(def)
		require.Nil(t, l)
		require.ErrorIs(t, err, fault.ErrSchema)
		_, err = def.Marshal()
		require.ErrorIs(t, err, fault.ErrSchema)
	}
}

// TestLimits uses a table at every limit.
func TestLimits(t *testing.T) {
	def := &schema.Table{Name: strings.Repeat("n", schema.MaxNameLength)}
	vals := make([]any, schema.MaxColumns)
	for i := range schema.MaxColumns {
		def.Columns = append(def.Columns, schema.Column{Name: fmt.Sprint("ü", i), Type: schema.Time, Nullable: i > 0})
		if i%2 == 1 {
			def.Columns[i].Type = schema.String
			vals[i] = fmt.Sprint(i)
		}
	}
	vals[0] = edges[schema.Time][1]
	for i := range schema.MaxIndexes {
		def.Indexes = append(def.Indexes, schema.Index{Name: fmt.Sprint("i", i), Columns: []int{schema.MaxColumns - 1 - i}})
	}
	def.Indexes[0] = schema.Index{Name: "primary", Columns: []int{0}, Unique: true}
	l := layoutOf(t, def)
	row, err := l.AppendRow(nil, vals)
	require.NoError(t, err)
	require.NoError(t, l.Check(row))
	got, err := l.DecodeRow(row)
	require.NoError(t, err)
	requireValues(t, vals, got)
}

func TestTypeNames(t *testing.T) {
	for typ := schema.Bool; typ <= schema.Time; typ++ {
		text, err := typ.MarshalText()
		require.NoError(t, err)
		require.Equal(t, typ.String(), string(text))
		var back schema.Type
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, typ, back)
	}
	require.Equal(t, "Type(99)", schema.Type(99).String())
	_, err := schema.Type(99).MarshalText()
	require.Error(t, err)
	require.Error(t, new(schema.Type).UnmarshalText(nil))
}

func TestEvolution(t *testing.T) {
	stored := usersTable()
	require.NoError(t, usersTable().CompatibleWith(stored))
	require.True(t, usersTable().Equal(stored))
	require.False(t, usersTable().AppendsTo(stored))
	more := func(d *schema.Table) {
		d.Columns = append(d.Columns, schema.Column{Name: "note", Type: schema.String})
	}
	for _, tc := range []struct {
		change  func(*schema.Table)
		column  string
		reason  string
		appends bool
	}{
		{func(d *schema.Table) { d.Name = "people" }, "", `stored name is "users"`, false},
		{func(d *schema.Table) { d.Columns[1].Name = "mail" }, "mail", `stored column at this position is "email"`, false},
		{func(d *schema.Table) { d.Columns[1].Type = schema.Bytes }, "email", "type bytes, stored is string", false},
		{func(d *schema.Table) { d.Columns[1].Nullable = true }, "email", "nullable, stored is not nullable", false},
		{func(d *schema.Table) { d.Columns[2].Nullable = false }, "born", "not nullable, stored is nullable", false},
		{func(d *schema.Table) { d.Columns = d.Columns[:2]; d.Indexes = d.Indexes[:2] }, "", "2 columns, stored are 3", false},
		{more, "", "4 columns, stored are 3", true},
		{func(d *schema.Table) { more(d); d.Indexes = d.Indexes[:2] }, "", "4 columns, stored are 3", false},
		{func(d *schema.Table) { more(d); d.Columns[0].Type = schema.Int32 }, "id", "type int32, stored is int64", false},
		{func(d *schema.Table) { d.Indexes = d.Indexes[:2] }, "", "2 indexes, stored are 3", false},
		{func(d *schema.Table) { d.Indexes[1].Name = "mail" }, "", `index "mail", stored at this position is "email"`, false},
		{func(d *schema.Table) { d.Indexes[1].Unique = false }, "", `index "email": unique false, stored is true`, false},
		{func(d *schema.Table) { slices.Reverse(d.Indexes[2].Columns) }, "", `index "born": columns ["email" "born"], stored are ["born" "email"]`, false},
	} {
		def := usersTable()
		tc.change(def)
		err := def.CompatibleWith(stored)
		var e *fault.Schema
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, fault.ErrSchemaMismatch)
		require.Equal(t, tc.column, e.Column)
		require.Equal(t, tc.reason, e.Reason)
		require.False(t, def.Equal(stored))
		require.Equal(t, tc.appends, def.AppendsTo(stored), tc.reason)
	}
}

// TestJSON keeps the stored form of a table fixed.
func TestJSON(t *testing.T) {
	data, err := usersTable().Marshal()
	require.NoError(t, err)
	goldentest.Compare(t, "testdata/table.golden.json", string(data)+"\n", *rewrite)
	back, err := schema.Unmarshal(data)
	require.NoError(t, err)
	require.True(t, usersTable().Equal(back))
}

func TestUnmarshalErrors(t *testing.T) {
	good, err := usersTable().Marshal()
	require.NoError(t, err)
	replace := func(old, new string) string {
		require.Contains(t, string(good), old)
		return strings.Replace(string(good), old, new, 1)
	}
	for _, tc := range []struct {
		data string
		kind error
	}{
		{"", fault.ErrCorrupt}, {"{", fault.ErrCorrupt}, {"[]", fault.ErrCorrupt}, {string(good) + "{}", fault.ErrCorrupt},
		{"null", fault.ErrFormat}, {"{}", fault.ErrFormat}, {replace(`"format":1`, `"format":2`), fault.ErrFormat},
		{replace(`"name":"users"`, `"name":"users","extra":1`), fault.ErrCorrupt},
		{replace(`"int64"`, `"int65"`), fault.ErrCorrupt}, {replace(`"int64"`, `4`), fault.ErrCorrupt},
		{replace(`[2,1]`, `[2,99999999999999999999]`), fault.ErrCorrupt},
		{replace(`[2,1]`, `[2,3]`), fault.ErrSchema}, {replace(`"users"`, `""`), fault.ErrSchema}, {replace(`"type":"int64"`, `"nullable":true`), fault.ErrSchema},
		{replace(`"columns":[{`, `"columns":null,"x":[{`), fault.ErrCorrupt},
	} {
		_, err := schema.Unmarshal([]byte(tc.data))
		require.ErrorIs(t, err, tc.kind, "%s", tc.data)
	}
}

func FuzzUnmarshal(f *testing.F) {
	r := newRand(f)
	for range 20 {
		data, err := randomTable(r).Marshal()
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		def, err := schema.Unmarshal(data)
		if err != nil {
			return
		}
		require.NoError(t, def.Validate())
		out, err := def.Marshal()
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		again, err := schema.Unmarshal(out)
		require.NoError(t, err)
		require.True(t, def.Equal(again))
	})
}
