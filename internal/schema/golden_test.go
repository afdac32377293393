package schema_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/goldentest"
	"github.com/rekindledb/rekindle/internal/schema"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// TestRowGolden keeps the bytes of the row format fixed: rows are on disk.
func TestRowGolden(t *testing.T) {
	def := &schema.Table{
		Name: "golden",
		Columns: []schema.Column{
			{Name: "id", Type: schema.Int64},
			{Name: "name", Type: schema.String},
			{Name: "small", Type: schema.Int8, Nullable: true},
			{Name: "at", Type: schema.Time, Nullable: true},
			{Name: "blob", Type: schema.Bytes, Nullable: true},
			{Name: "rate", Type: schema.Float32},
		},
		Indexes: []schema.Index{{Name: "primary", Columns: []int{0}, Unique: true}},
	}
	var out strings.Builder
	row := func(title string, columns int, vals ...any) {
		part := *def
		part.Columns = part.Columns[:columns]
		b, err := layoutOf(t, &part).AppendRow(nil, vals)
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s\n", title)
		describeRow(&out, &part, b)
		require.NoError(t, layoutOf(t, def).Check(b))
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	row("all columns", 6, int64(0x0102030405060708), "abc", -2, at, []byte{0xFF, 0}, float32(1.5))
	row("NULL and empty", 6, -1, "", nil, nil, nil, float32(0))
	row("empty is not NULL", 6, 1, "", 0, time.Time{}, []byte{}, float32(0))
	row("written with two columns", 2, 1, "x")

	goldentest.Compare(t, "testdata/rows.golden", out.String(), *rewrite)
}

// describeRow writes the bytes with their meaning, area by area. It knows the
// format from docs/format/row.md, not from the code under test.
func describeRow(out *strings.Builder, def *schema.Table, b []byte) {
	offset := 0
	line := func(n int, meaning string) {
		fmt.Fprintf(out, "  %2d-%-2d  %-36s # %s\n", offset, offset+n, fmt.Sprintf("% x", b[offset:offset+n]), meaning)
		offset += n
	}
	widths := map[schema.Type]int{schema.Int64: 8, schema.Int8: 1, schema.Time: 12, schema.Float32: 4}
	line(2, "columns")
	nullables := 0
	for _, c := range def.Columns {
		if c.Nullable {
			nullables++
		}
	}
	if nullables > 0 {
		line((nullables+7)/8, "NULL bitmap")
	}
	for _, c := range def.Columns {
		if n := widths[c.Type]; n > 0 {
			line(n, c.Name)
		}
	}
	for _, c := range def.Columns {
		if widths[c.Type] == 0 {
			line(4, "end of "+c.Name)
		}
	}
	line(len(b)-offset, "data")
}
