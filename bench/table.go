package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable shows measurements: a line for each of the circumstances that
// differ in what is named, in the order of their first measurement, and a
// column for each of the names that are there. Circumstances are called as in
// JSON. Series are left out.
func WriteTable(w io.Writer, measurements []Measurement, circumstances, names []string) error {
	t := table{cells: map[string]map[string]string{}}
	present := map[string]bool{}
	for _, m := range measurements {
		if m.At == 0 && slices.Contains(names, m.Name) {
			t.add(m, circumstances)
			present[m.Name] = true
		}
	}
	columns := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !present[name] })
	return t.write(w, circumstances, columns)
}

type table struct {
	lines []string                     // circumstances, with tabs between
	cells map[string]map[string]string // by line and name
}

func (t *table) add(m Measurement, circumstances []string) {
	line := strings.Join(m.circumstances(circumstances), "\t")
	if t.cells[line] == nil {
		t.lines = append(t.lines, line)
		t.cells[line] = map[string]string{}
	}
	t.cells[line][m.Name] = round(m.Value)
}

func (t *table) write(w io.Writer, circumstances, columns []string) error {
	if len(t.lines) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells []string) {
		fmt.Fprintln(out, strings.Join(cells, "\t")+"\t") // the error stays in the writer, for Flush
	}
	row(slices.Concat(circumstances, columns))
	for _, line := range t.lines {
		cells := []string{line}
		for _, name := range columns {
			cell, ok := t.cells[line][name]
			if !ok {
				cell = "-"
			}
			cells = append(cells, cell)
		}
		row(cells)
	}
	return out.Flush()
}

// circumstances are the named ones.
func (m *Measurement) circumstances(names []string) []string {
	all := map[string]string{
		"bench":       m.Bench,
		"strategy":    m.Strategy,
		"rows":        strconv.FormatInt(m.Rows, 10),
		"tail":        strconv.FormatInt(m.Tail, 10),
		"cold":        strconv.FormatBool(m.Cold),
		"stop":        m.Stop,
		"checkpoints": m.Checkpoints,
	}
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = all[name]
	}
	return values
}

// round leaves three digits, or what is before the point.
func round(v float64) string {
	if v >= 100 || v <= -100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
