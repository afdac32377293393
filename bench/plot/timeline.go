package main

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/rekindledb/rekindle/bench"
)

// timeline draws throughput through checkpoints, a panel a strategy, all to the
// same scale.
func timeline(lines []bench.Measurement) ([]figure, error) {
	names, colors := strategies(lines)
	byRows := func(m *bench.Measurement) string { return fmt.Sprint(m.Rows) }
	var figures []figure
	rows, rates := group(lines, "timeline_tx_s", byRows)
	_, shares := group(lines, "timeline_ckpt", byRows)
	for _, n := range rows {
		f := figure{name: "timeline-" + n}
		var top float64
		for _, m := range rates[n] {
			top = max(top, m.Value)
		}
		for _, name := range names {
			points := pointsOf(rates[n], name, at)
			if len(points) == 0 {
				continue
			}
			p, err := panel(name, points, pointsOf(shares[n], name, at), top, colors[name])
			if err != nil {
				return nil, err
			}
			f.panels = append(f.panels, p)
		}
		f.panels[len(f.panels)-1].X.Label.Text = "s; shaded: a checkpoint runs"
		figures = append(figures, f)
	}
	return figures, nil
}

// panel draws one strategy.
func panel(name string, rates, shares plotter.XYs, top float64, c color.Color) (*plot.Plot, error) {
	p := newPlot(name, "", "transactions/s")
	p.Y.Min, p.Y.Max = 0, top*1.05
	if err := addBands(p, shares, p.Y.Max); err != nil {
		return nil, err
	}
	for _, part := range unbroken(rates) {
		if err := addLine(p, "", part, c, false); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// window is the distance between two points of a series in seconds.
const window = 0.1

// addBands shades the windows in which a checkpoint ran.
func addBands(p *plot.Plot, shares plotter.XYs, top float64) error {
	running := slices.DeleteFunc(shares, func(s plotter.XY) bool { return s.Y <= 0 })
	for _, part := range unbroken(running) {
		from, to := part[0].X-window, part[len(part)-1].X
		band, err := plotter.NewPolygon(plotter.XYs{{X: from}, {X: from, Y: top}, {X: to, Y: top}, {X: to}})
		if err != nil {
			return err
		}
		band.Color = color.Gray{0xdd}
		band.LineStyle.Width = 0
		p.Add(band)
	}
	return nil
}

// unbroken splits a series where windows are missing.
func unbroken(points plotter.XYs) []plotter.XYs {
	var parts []plotter.XYs
	start := 0
	for i := range points {
		if i > 0 && points[i].X-points[i-1].X > 1.5*window {
			parts = append(parts, points[start:i])
			start = i
		}
	}
	if start < len(points) {
		parts = append(parts, points[start:])
	}
	return parts
}
