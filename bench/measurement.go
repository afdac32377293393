package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Measurement is a Metric with the circumstances it was taken under: a line of
// the recovery and overhead benchmarks. The value is the median of the runs.
type Measurement struct {
	Bench string `json:"bench"` // "recovery" or "overhead"
	Metric
	Rows int64  `json:"rows"`
	Tail int64  `json:"tail"` // records asked for behind the last checkpoint
	Cold bool   `json:"cold"` // the page cache was dropped before
	Stop string `json:"stop"` // how the writing process ended: "kill" or "close"

	// Checkpoints is for overhead, see there.
	Checkpoints string `json:"checkpoints,omitempty"`
	// At is for series: the end of the window, in seconds.
	At float64 `json:"at_s,omitempty"`
	// Runs is how many values there were; Min and Max are their extremes.
	Runs int     `json:"runs"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// With returns the measurement with a name and a unit, and the median of values,
// of which there is at least one. The receiver has the circumstances.
func (m Measurement) With(name, unit string, values ...float64) Measurement {
	m.Name, m.Unit, m.Value = name, unit, Median(values)
	m.Runs, m.Min, m.Max = len(values), slices.Min(values), slices.Max(values)
	return m
}

// Median returns the median of at least one value.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ReadMeasurements reads what WriteJSON wrote.
func ReadMeasurements(r io.Reader) ([]Measurement, error) {
	var all []Measurement
	dec := json.NewDecoder(bufio.NewReader(r))
	dec.DisallowUnknownFields()
	for {
		var m Measurement
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("measurement %d: %w", len(all)+1, err)
		}
		all = append(all, m)
	}
}
