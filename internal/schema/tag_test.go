package schema_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/schema"
)

// structOf builds a struct type from "Name tag" lines; the fields are int64
// except where types says otherwise.
func structOf(types map[string]reflect.Type, lines ...string) reflect.Type {
	var list []reflect.StructField
	for _, line := range lines {
		name, tag, _ := strings.Cut(line, " ")
		f := reflect.StructField{Name: name, Type: reflect.TypeFor[int64](), Tag: reflect.StructTag(tag)}
		if t := types[name]; t != nil {
			f.Type = t
		}
		list = append(list, f)
	}
	return reflect.StructOf(list)
}

func TestTagErrors(t *testing.T) {
	pk := "ID `,pk`"
	for _, tc := range []struct {
		fields []string // tags in backquotes are put into rekindle:"…"
		column string
		reason string
	}{
		{[]string{"A"}, "", "no primary key: no field has the pk option"},
		{[]string{"A `-`"}, "", ""},
		{[]string{pk, "A `x,pkk`"}, "", `field A: unknown option "pkk"`},
		{[]string{pk, "A `x, index`"}, "", `field A: unknown option " index"`},
		{[]string{pk, "A `x,`"}, "", `field A: unknown option ""`},
		{[]string{pk, "A `,pk=`"}, "", `field A: option "pk=" has nothing after =`},
		{[]string{pk, "A `,pk=0`"}, "", `field A: option "pk=0": position "0" is not a number from 1`},
		{[]string{pk, "A `,pk=-1`"}, "", `field A: option "pk=-1": position "-1" is not a number from 1`},
		{[]string{pk, "A `,pk=x`"}, "", `field A: option "pk=x": position "x" is not a number from 1`},
		{[]string{pk, "A `,pk=99999999999`"}, "", `field A: option "pk=99999999999": position "99999999999" is not a number from 1`},
		{[]string{pk, "A `,index=`"}, "", `field A: option "index=" has nothing after =`},
		{[]string{pk, "A `,index=:1`"}, "", `field A: option "index=:1" has no index name`},
		{[]string{pk, "A `,unique=u:`"}, "", `field A: option "unique=u:": position "" is not a number from 1`},
		{[]string{pk, "A `,unique=u:1:2`"}, "", `field A: option "unique=u:1:2": position "1:2" is not a number from 1`},
		{[]string{pk, "A `-,index`"}, "", `field A: options after "-"`},
		{[]string{pk, "A `,index=primary`"}, "a", `field A: index name "primary" is reserved for the primary key`},
		{[]string{pk, "Primary `,unique`"}, "primary", `field Primary: index name "primary" is reserved for the primary key`},
		{[]string{pk, "A `,index,unique`"}, "a", `field A: index "a" is declared both index and unique`},
		{[]string{pk, "A `,index=x`", "B `,unique=x`"}, "b", `field B: index "x" is declared both index and unique`},
		{[]string{"A `,pk,pk`"}, "a", `field A: the column is twice in index "primary"`},
		{[]string{pk, "A `,index=x:1,index=x:2`"}, "a", `field A: the column is twice in index "x"`},
		{[]string{pk, "A `,index=x:1`", "B `,index=x`"}, "a", `index "x": some columns have a position and some have none`},
		{[]string{pk, "A `,index=x:1`", "B `,index=x:1`"}, "a", `index "x": positions of its 2 columns are not 1 to 2`},
		{[]string{"A `,pk=2`", "B `,pk=3`"}, "a", `index "primary": positions of its 2 columns are not 1 to 2`},
		{[]string{pk, "A `id`"}, "id", "field A: field ID has the same column name"},
		{[]string{pk, "UserID", "UserId"}, "user_id", "field UserId: field UserID has the same column name"},
		{[]string{pk, "A `x\\n`"}, "x\n", `column name "x\n" has a control character`},
		{[]string{pk, "A `x\\xff`"}, "x\xff", `column name "x\xff" is not UTF-8`},
		{[]string{pk, "A `x` rekindle:\"y\""}, "", "field A: two rekindle tags"},
		{[]string{pk, "A rekindle:x"}, "", "field A: struct tag `rekindle:x` is not of the form key:\"value\""},
		{[]string{pk, "A rekindle"}, "", "field A: struct tag `rekindle` is not of the form key:\"value\""},
		{[]string{pk, "A rekindle:\"x"}, "", "field A: struct tag `rekindle:\"x` is not of the form key:\"value\""},
	} {
		lines := make([]string, len(tc.fields))
		for i, f := range tc.fields {
			before, quoted, found := strings.Cut(f, "`")
			if found {
				value, after, _ := strings.Cut(quoted, "`")
				f = before + `rekindle:"` + value + `"` + after
			}
			lines[i] = f
		}
		_, m, err := schema.Map(structOf(nil, lines...), "t")
		require.Nil(t, m)
		if tc.reason == "" {
			require.ErrorContains(t, err, "has no columns: no exported fields")
			continue
		}
		requireSchemaError(t, err, tc.column, tc.reason)
	}
}

func TestForeignTags(t *testing.T) {
	typ := structOf(nil, `ID json:"id" rekindle:"key,pk"`, `A json:"a"`, `B broken`, `C json:"rekindle"`)
	def, _, err := schema.Map(typ, "t")
	require.NoError(t, err)
	require.Equal(t, []string{"key", "a", "b", "c"}, columnNames(def))
}

func columnNames(def *schema.Table) (names []string) {
	for _, c := range def.Columns {
		names = append(names, c.Name)
	}
	return names
}

func TestFieldTypeErrors(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[map[string]int](), reflect.TypeFor[any](), reflect.TypeFor[error](),
		reflect.TypeFor[[]string](), reflect.TypeFor[[4]byte](), reflect.TypeFor[complex64](), reflect.TypeFor[complex128](), reflect.TypeFor[uintptr](),
		reflect.TypeFor[struct{ X int }](), reflect.TypeFor[*struct{ X int }](), reflect.TypeFor[*chan int](), reflect.TypeFor[[]int8](),
		reflect.TypeFor[schema.Null[[]int]](), reflect.TypeFor[schema.Null[any]](),
	} {
		_, _, err := schema.Map(structOf(map[string]reflect.Type{"X": typ}, `ID rekindle:",pk"`, "X"), "t")
		requireSchemaError(t, err, "x", fmt.Sprintf("field X: type %v is not supported", typ))
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[**int](), reflect.TypeFor[*schema.Null[int]](), reflect.TypeFor[schema.Null[*int]](), reflect.TypeFor[schema.Null[schema.Null[int]]](),
	} {
		_, _, err := schema.Map(structOf(map[string]reflect.Type{"X": typ}, `ID rekindle:",pk"`, "X"), "t")
		requireSchemaError(t, err, "x", fmt.Sprintf("field X: type %v can be NULL in two ways", typ))
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[*int](), reflect.TypeFor[schema.Null[int]]()} {
		_, _, err := schema.Map(structOf(map[string]reflect.Type{"X": typ}, `X rekindle:",pk"`), "t")
		requireSchemaError(t, err, "x", "a primary key column is nullable")
	}
}

func TestMapErrors(t *testing.T) {
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[int](), reflect.TypeFor[*everything](), reflect.TypeFor[any](), reflect.TypeFor[[]everything]()} {
		def, m, err := schema.Map(typ, "t")
		require.Nil(t, def)
		require.Nil(t, m)
		requireSchemaError(t, err, "", fmt.Sprintf("%v is not a struct type", typ))
	}
	_, _, err := schema.Map(reflect.TypeFor[struct{}](), "t")
	requireSchemaError(t, err, "", "type struct {} has no columns: no exported fields")
	_, _, err = schema.Map(reflect.TypeFor[benchSmall](), "")
	requireSchemaError(t, err, "", "empty table name")

	type unexported struct {
		ID int64 `rekindle:",pk"`
		a  int   `rekindle:"a"`
	}
	_, _, err = schema.Map(reflect.TypeFor[unexported](), "t")
	requireSchemaError(t, err, "a", "field a: field is not exported but has a tag")

	type embedsTagged struct {
		benchSmall `rekindle:"x"`
	}
	_, _, err = schema.Map(reflect.TypeFor[embedsTagged](), "t")
	requireSchemaError(t, err, "x", "field benchSmall: tag on an embedded struct; tag its fields")

	type embedsPointer struct{ *benchSmall }
	_, _, err = schema.Map(reflect.TypeFor[embedsPointer](), "t")
	requireSchemaError(t, err, "", "field benchSmall: embedded pointer; embed the struct itself, or skip it with a - tag")

	type twice struct {
		benchSmall
		Text string
	}
	_, _, err = schema.Map(reflect.TypeFor[twice](), "t")
	requireSchemaError(t, err, "text", "field Text: field benchSmall.Text has the same column name")
	_ = unexported{a: 1}

	fields := make([]string, schema.MaxColumns+1)
	for i := range fields {
		fields[i] = fmt.Sprint("F", i)
	}
	fields[0] += ` rekindle:",pk"`
	_, _, err = schema.Map(structOf(nil, fields...), "t")
	requireSchemaError(t, err, "", "1025 columns, limit 1024")
}

func TestEmbedding(t *testing.T) {
	type ID int64
	type row struct {
		ID          `rekindle:",pk"`
		time.Time   // a column
		benchWide   `rekindle:"-"`
		*nullsAfter `rekindle:"-"`
		schema.Null[int]
	}
	def, _ := mapOf[row](t)
	require.Equal(t, []schema.Column{
		{Name: "id", Type: schema.Int64}, {Name: "time", Type: schema.Time}, {Name: "null", Type: schema.Int64, Nullable: true},
	}, def.Columns)
}

func TestColumnNames(t *testing.T) {
	fields := []string{"ID", "UserID", "HTTPPort", "OrderLineNumber", "A", "Address2", "X9Y", "Snake_Case", "OAuthToken", "Größe", "ÄhnlicheID"}
	want := []string{"id", "user_id", "http_port", "order_line_number", "a", "address2", "x9_y", "snake_case", "o_auth_token", "größe", "ähnliche_id"}
	lines := append([]string{`Key rekindle:",pk"`}, fields...)
	def, _, err := schema.Map(structOf(nil, lines...), "t")
	require.NoError(t, err)
	require.Equal(t, want, columnNames(def)[1:])
}

func TestIndexTags(t *testing.T) {
	def, _, err := schema.Map(structOf(nil,
		`A rekindle:",index=z,unique=two:2"`, `B rekindle:",pk,unique=two:1"`, `C rekindle:",pk,index"`, `D rekindle:"dd,index=z,index,unique=d1"`), "t")
	require.NoError(t, err)
	require.Equal(t, []schema.Index{
		{Name: "primary", Columns: []int{1, 2}, Unique: true},
		{Name: "z", Columns: []int{0, 3}},
		{Name: "two", Columns: []int{1, 0}, Unique: true},
		{Name: "c", Columns: []int{2}},
		{Name: "dd", Columns: []int{3}},
		{Name: "d1", Columns: []int{3}, Unique: true},
	}, def.Indexes)
}
