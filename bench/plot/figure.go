package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/rekindledb/rekindle/bench"
)

// figure is a file to be: plots one below the other.
type figure struct {
	name   string
	panels []*plot.Plot
}

// Sizes of a figure.
const (
	width       = 8 * vg.Inch
	panelHeight = 5 * vg.Inch // of the only panel
	stripHeight = 2 * vg.Inch // of one of several
)

// drawAll makes all figures that the lines have something for.
func drawAll(lines []bench.Measurement) ([]figure, error) {
	var all []figure
	for _, f := range []func([]bench.Measurement) ([]figure, error){recovery, climb, timeline, memory} {
		figures, err := f(lines)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}

func save(dir string, figures []figure, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range figures {
		name := filepath.Join(dir, f.name+".svg")
		text, err := f.svg()
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

func (f *figure) svg() ([]byte, error) {
	height := panelHeight
	if n := len(f.panels); n > 1 {
		height = stripHeight * vg.Length(n)
	}
	canvas := vgsvg.New(width, height)
	rows := make([][]*plot.Plot, len(f.panels))
	for i, p := range f.panels {
		rows[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadX: vg.Millimeter, PadY: vg.Millimeter, PadTop: vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
		rows[i][0].Draw(row[0])
	}
	var text bytes.Buffer
	_, err := canvas.WriteTo(&text)
	return text.Bytes(), err
}

// newPlot returns an empty plot with titles.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Tick.Marker, p.Y.Tick.Marker = plainTicks{plot.DefaultTicks{}}, plainTicks{plot.DefaultTicks{}}
	p.Legend.Top = true
	p.Legend.Padding = vg.Millimeter
	return p
}

// plainTicks writes numbers out.
type plainTicks struct{ plot.Ticker }

func (t plainTicks) Ticks(lo, hi float64) []plot.Tick {
	ticks := t.Ticker.Ticks(lo, hi)
	for i, tick := range ticks {
		if tick.Label != "" {
			ticks[i].Label = strconv.FormatFloat(tick.Value, 'f', -1, 64)
		}
	}
	return ticks
}

// logAxis makes an axis logarithmic, from one power of ten to another, so that
// it has labels whatever the data.
func logAxis(axis *plot.Axis, values []float64) {
	axis.Scale = plot.LogScale{}
	axis.Tick.Marker = plainTicks{plot.LogTicks{}}
	axis.Min = math.Pow10(int(math.Floor(math.Log10(slices.Min(values)))))
	axis.Max = math.Pow10(int(math.Ceil(math.Log10(slices.Max(values)))))
	if axis.Max == axis.Min {
		axis.Max *= 10
	}
}

// palette is that of Okabe and Ito, which people tell apart whatever colours
// they see, without its black and yellow.
func palette() []color.Color {
	return []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
		color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	}
}

// strategies gives every strategy of the lines a colour, the same in all
// figures.
func strategies(lines []bench.Measurement) ([]string, map[string]color.Color) {
	seen := map[string]bool{}
	for _, m := range lines {
		seen[m.Strategy] = true
	}
	names := slices.Sorted(maps.Keys(seen))
	colors := map[string]color.Color{}
	for i, name := range names {
		colors[name] = palette()[i%len(palette())]
	}
	return names, colors
}

// group splits the lines with a name by what of returns, and returns the
// results in ascending order too.
func group(lines []bench.Measurement, name string, of func(*bench.Measurement) string) ([]string, map[string][]bench.Measurement) {
	groups := map[string][]bench.Measurement{}
	for _, m := range lines {
		if m.Name == name {
			groups[of(&m)] = append(groups[of(&m)], m)
		}
	}
	return slices.Sorted(maps.Keys(groups)), groups
}

// state names the circumstances of a restart.
func state(m *bench.Measurement) string {
	cache := "warm"
	if m.Cold {
		cache = "cold"
	}
	return fmt.Sprintf("%s-tail%d-%s", m.Stop, m.Tail, cache)
}
