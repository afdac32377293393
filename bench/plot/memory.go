package main

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/rekindledb/rekindle/bench"
)

// kind is a kind of memory: a bar for each strategy.
type kind struct {
	title, bench, name, checkpoints string
}

func kinds() []kind {
	return []kind{
		{"indexes under load", "overhead", "index_mb", "on"},
		{"process under load, peak", "overhead", "peak_rss_mb", "on"},
		{"indexes after a restart", "recovery", "index_mb", ""},
		{"process after a restart, peak", "recovery", "peak_rss_mb", ""},
	}
}

// of returns the largest value of a strategy.
func (k *kind) of(lines []bench.Measurement, strategy string) float64 {
	var most float64
	for _, m := range lines {
		if m.Strategy == strategy && m.Bench == k.bench && m.Name == k.name && m.Checkpoints == k.checkpoints {
			most = max(most, m.Value)
		}
	}
	return most
}

// memory draws memory by strategy. Of several restarts the largest counts.
func memory(lines []bench.Measurement) ([]figure, error) {
	names, _ := strategies(lines)
	var rows []int64
	for _, m := range lines {
		if !slices.Contains(rows, m.Rows) && slices.ContainsFunc(kinds(), func(k kind) bool { return k.name == m.Name }) {
			rows = append(rows, m.Rows)
		}
	}
	var figures []figure
	for _, n := range rows {
		p, err := bars(names, slices.DeleteFunc(slices.Clone(lines), func(m bench.Measurement) bool { return m.Rows != n }))
		if err != nil {
			return nil, err
		}
		p.Title.Text = fmt.Sprintf("Memory with %d rows", n)
		figures = append(figures, figure{fmt.Sprintf("memory-%d", n), []*plot.Plot{p}})
	}
	return figures, nil
}

// bars draws a group of bars a strategy, a bar for each kind that there is.
func bars(names []string, lines []bench.Measurement) (*plot.Plot, error) {
	p := newPlot("", "", "MB")
	present := slices.DeleteFunc(kinds(), func(k kind) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return k.of(lines, name) > 0 })
	})
	const barWidth = 8 * vg.Millimeter
	for i, k := range present {
		values := make(plotter.Values, len(names))
		for j, name := range names {
			values[j] = k.of(lines, name)
		}
		chart, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return nil, err
		}
		chart.Color = palette()[i]
		chart.LineStyle.Width = 0
		chart.Offset = barWidth * (vg.Length(i) - vg.Length(len(present)-1)/2)
		p.Add(chart)
		p.Legend.Add(k.title, chart)
	}
	p.NominalX(names...)
	p.Y.Min = 0
	p.Y.Max *= 1.3 // room for the legend
	return p, nil
}
