package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rekindledb/rekindle/bench"
)

// recovery draws the time to the first read against rows.
func recovery(lines []bench.Measurement) ([]figure, error) {
	names, colors := strategies(lines)
	var figures []figure
	states, groups := group(lines, "first_read_ms", state)
	for _, s := range states {
		p := newPlot("Restart: "+s, "rows", "ms from Open to the first read")
		var rows, times []float64
		for _, m := range groups[s] {
			rows, times = append(rows, float64(m.Rows)), append(times, m.Value)
		}
		logAxis(&p.X, rows)
		logAxis(&p.Y, times)
		p.Add(plotter.NewGrid())
		for _, name := range names {
			points := pointsOf(groups[s], name, func(m *bench.Measurement) float64 { return float64(m.Rows) })
			if err := addLine(p, name, points, colors[name], true); err != nil {
				return nil, err
			}
		}
		p.Legend.Left = true
		figures = append(figures, figure{"recovery-" + s, []*plot.Plot{p}})
	}
	return figures, nil
}

// climb draws how reads become faster after the call of Open.
func climb(lines []bench.Measurement) ([]figure, error) {
	names, colors := strategies(lines)
	var figures []figure
	states, groups := group(lines, "reads_s", func(m *bench.Measurement) string { return fmt.Sprintf("%s-%d", state(m), m.Rows) })
	for _, s := range states {
		p := newPlot("After a restart: "+s, "s since the call of Open", "reads/s")
		p.Y.Min = 0
		p.Add(plotter.NewGrid())
		for _, name := range names {
			points := pointsOf(groups[s], name, at)
			if err := addLine(p, name, points, colors[name], false); err != nil {
				return nil, err
			}
		}
		p.Legend.Top = false
		figures = append(figures, figure{"climb-" + s, []*plot.Plot{p}})
	}
	return figures, nil
}

func at(m *bench.Measurement) float64 { return m.At }

// pointsOf returns the points of one strategy.
func pointsOf(lines []bench.Measurement, strategy string, x func(*bench.Measurement) float64) plotter.XYs {
	var points plotter.XYs
	for _, m := range lines {
		if m.Strategy == strategy {
			points = append(points, plotter.XY{X: x(&m), Y: m.Value})
		}
	}
	return points
}

// addLine adds a line, with a point for each value if there are few.
func addLine(p *plot.Plot, name string, points plotter.XYs, c color.Color, marked bool) error {
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.5)
	marks.Color, marks.Shape = c, draw.CircleGlyph{}
	p.Add(line)
	if marked {
		p.Add(marks)
	}
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}
