package restart

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rekindledb/rekindle/bench"
)

// Measurements returns the medians of the samples, as the package describes
// them.
func (c *Case) Measurements() []bench.Measurement {
	m := c.figures()
	return append(m, c.series()...)
}

func (c *Case) base() bench.Measurement {
	return bench.Measurement{
		Bench:  "recovery",
		Metric: bench.Metric{Strategy: c.Strategy},
		Rows:   c.Rows, Tail: c.Tail, Cold: c.Cold, Stop: string(c.Stop),
	}
}

// figure is one value of a sample.
type figure struct {
	name, unit string
	of         func(*Sample) float64
}

func figures() []figure {
	return []figure{
		{"open_ms", "ms", func(s *Sample) float64 { return milliseconds(s.Open) }},
		{"first_read_ms", "ms", func(s *Sample) float64 { return milliseconds(s.FirstRead) }},
		{"reads_10k_ms", "ms", func(s *Sample) float64 { return milliseconds(s.Reads10k) }},
		{"steady_s", "s", func(s *Sample) float64 { return s.Steady().Seconds() }},
		{"open_index_ms", "ms", func(s *Sample) float64 { return milliseconds(bench.IndexPart(s.Recovery)) }},
		{"index_mb", "MB", func(s *Sample) float64 { return megabytes(s.Index) }},
		{"replayed", "1", func(s *Sample) float64 { return float64(s.Recovery.RecordsReplayed) }},
		{"tail_mb", "MB", func(s *Sample) float64 { return megabytes(s.Recovery.TailBytes) }},
		{"entries_replayed", "1", func(s *Sample) float64 { return float64(s.Recovery.EntriesReplayed) }},
		{"rows_scanned", "1", func(s *Sample) float64 { return float64(s.Recovery.RowsScanned) }},
		{"indexes_rebuilt", "1", func(s *Sample) float64 { return float64(s.Recovery.IndexesRebuilt) }},
		{"fallbacks", "1", func(s *Sample) float64 { return float64(len(s.Recovery.Fallbacks)) }},
	}
}

// usageFigures are there only where the system tells.
func usageFigures() []figure {
	return []figure{
		{"peak_rss_mb", "MB", func(s *Sample) float64 { return megabytes(s.AtEnd.Peak) }},
		{"open_rss_mb", "MB", func(s *Sample) float64 { return megabytes(s.AtReads.Peak) }},
		{"mapped_mb", "MB", func(s *Sample) float64 { return megabytes(s.AtReads.Mapped) }},
		{"read_mb", "MB", func(s *Sample) float64 { return megabytes(s.AtReads.Storage) }},
		{"read_calls_mb", "MB", func(s *Sample) float64 { return megabytes(s.AtReads.Calls) }},
	}
}

// otherPhase is the part of an Open that its report has no phase for.
const otherPhase = "other"

// phaseFigures are those of the phases that any sample has.
func (c *Case) phaseFigures() []figure {
	var list []figure
	add := func(name string, of func(*Sample) time.Duration) {
		list = append(list, figure{phaseName(name), "ms", func(s *Sample) float64 { return milliseconds(of(s)) }})
	}
	for _, name := range c.phases() {
		add(name, func(s *Sample) time.Duration { return s.phase(name) })
	}
	add(otherPhase, func(s *Sample) time.Duration { return s.Open - s.Recovery.Total })
	return list
}

func (c *Case) phases() []string {
	var names []string
	for i := range c.Samples {
		for _, p := range c.Samples[i].Recovery.Phases {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func (s *Sample) phase(name string) (sum time.Duration) {
	for _, p := range s.Recovery.Phases {
		if p.Name == name {
			sum += p.Duration
		}
	}
	return sum
}

const phasePrefix = "phase_"

// phaseName makes a name of lower-case words joined by "_".
func phaseName(phase string) string {
	words := strings.FieldsFunc(strings.ToLower(phase), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return phasePrefix + strings.Join(words, "_") + "_ms"
}

func (c *Case) figures() []bench.Measurement {
	list := figures()
	if c.Samples[0].AtEnd.Known {
		list = append(list, usageFigures()...)
	}
	list = append(list, c.phaseFigures()...)
	lines := make([]bench.Measurement, len(list))
	for i, f := range list {
		lines[i] = c.base().With(f.name, f.unit, c.values(f)...)
	}
	return lines
}

func (c *Case) values(f figure) []float64 {
	values := make([]float64, len(c.Samples))
	for i := range c.Samples {
		values[i] = f.of(&c.Samples[i])
	}
	return values
}

// series goes as far as all samples do.
func (c *Case) series() []bench.Measurement {
	windows := len(c.Samples[0].Windows)
	for i := range c.Samples {
		windows = min(windows, len(c.Samples[i].Windows))
	}
	var lines []bench.Measurement
	for w := range windows {
		at := c.base()
		at.At = (time.Duration(w+1) * Window).Seconds()
		var rates, medians []float64
		for i := range c.Samples {
			reads := c.Samples[i].Windows[w]
			rates = append(rates, float64(reads.Count)/Window.Seconds())
			if reads.Count > 0 {
				medians = append(medians, float64(reads.Median)/float64(time.Microsecond))
			}
		}
		lines = append(lines, at.With("reads_s", "1/s", rates...))
		if len(medians) > 0 {
			lines = append(lines, at.With("read_p50_us", "us", medians...))
		}
	}
	return lines
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

// WriteTables shows the most important measurements to people.
func WriteTables(w io.Writer, lines []bench.Measurement) error {
	circumstances := []string{"strategy", "rows", "tail", "stop", "cold"}
	err := bench.WriteTable(w, lines, circumstances, []string{
		"open_ms", "first_read_ms", "reads_10k_ms", "steady_s", "replayed",
		"peak_rss_mb", "index_mb", "mapped_mb", "read_mb", "read_calls_mb", "fallbacks",
	})
	if err != nil {
		return err
	}
	phases := []string{"open_ms"}
	for _, m := range lines {
		if strings.HasPrefix(m.Name, phasePrefix) && !slices.Contains(phases, m.Name) {
			phases = append(phases, m.Name)
		}
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return bench.WriteTable(w, lines, circumstances, phases)
}
