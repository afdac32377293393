package overhead

import (
	"io"
	"time"

	"github.com/rekindledb/rekindle/bench"
)

// Conditions, as the package describes them.
const (
	off         = "off"
	on          = "on"
	running     = "running"
	full        = "full"
	incremental = "incremental"
)

// lines collects the measurements of a case.
type lines struct {
	base bench.Measurement
	list []bench.Measurement
}

// add takes values that are not there if nothing was measured.
func (l *lines) add(condition, name, unit string, values []float64) {
	if len(values) == 0 {
		return
	}
	m := l.base
	m.Checkpoints = condition
	l.list = append(l.list, m.With(name, unit, values...))
}

// Measurements returns the medians of the slices and of the checkpoints.
func (c *Case) Measurements() []bench.Measurement {
	l := &lines{base: bench.Measurement{
		Bench:  "overhead",
		Metric: bench.Metric{Strategy: c.Strategy},
		Rows:   c.Rows,
		Stop:   "close",
	}}
	c.Result.slices(l)
	c.Result.comparisons(l)
	c.Result.checkpoints(l)
	if c.Result.Memory.Known {
		l.add(on, "peak_rss_mb", "MB", []float64{megabytes(c.Result.Memory.Peak)})
	}
	c.Result.timeline(l)
	return l.list
}

// of returns the slices of one kind.
func (r *Result) of(on bool) []Slice {
	var found []Slice
	for _, s := range r.Slices {
		if s.On == on {
			found = append(found, s)
		}
	}
	return found
}

// values returns those of the slices for which there are any.
func values(slices []Slice, value func(*Slice) (float64, bool)) []float64 {
	var list []float64
	for i := range slices {
		if v, ok := value(&slices[i]); ok {
			list = append(list, v)
		}
	}
	return list
}

func (r *Result) slices(l *lines) {
	for _, group := range []struct {
		condition string
		slices    []Slice
		commits   func(*Slice) *Commits
	}{
		{off, r.of(false), func(s *Slice) *Commits { return &s.All }},
		{on, r.of(true), func(s *Slice) *Commits { return &s.All }},
		{running, r.of(true), func(s *Slice) *Commits { return &s.Running }},
	} {
		for _, f := range commitFigures() {
			l.add(group.condition, f.name, f.unit, values(group.slices, func(s *Slice) (float64, bool) {
				c := group.commits(s)
				return f.of(c), c.Count > 0
			}))
		}
		if group.condition != running {
			l.add(group.condition, "index_mb", "MB", values(group.slices, func(s *Slice) (float64, bool) {
				return megabytes(s.Index), true
			}))
		}
	}
}

type commitFigure struct {
	name, unit string
	of         func(*Commits) float64
}

func commitFigures() []commitFigure {
	return []commitFigure{
		{"tx_s", "1/s", (*Commits).rate},
		{"commit_p50_us", "us", func(c *Commits) float64 { return microseconds(c.P50) }},
		{"commit_p99_us", "us", func(c *Commits) float64 { return microseconds(c.P99) }},
		{"commit_p999_us", "us", func(c *Commits) float64 { return microseconds(c.P999) }},
	}
}

func (c *Commits) rate() float64 { return float64(c.Count) / c.Time.Seconds() }

// comparisons are made within the pairs.
func (r *Result) comparisons(l *lines) {
	for _, group := range []struct {
		condition string
		commits   func(*Slice) *Commits
	}{
		{on, func(s *Slice) *Commits { return &s.All }},
		{running, func(s *Slice) *Commits { return &s.Running }},
	} {
		var loss, ratio []float64
		without := r.of(false)
		for i, s := range r.of(true) {
			a, b := &without[i].All, group.commits(&s)
			if a.Count == 0 || b.Count == 0 {
				continue
			}
			loss = append(loss, 100*(1-b.rate()/a.rate()))
			ratio = append(ratio, float64(b.P99)/float64(a.P99))
		}
		l.add(group.condition, "tx_loss_pct", "%", loss)
		l.add(group.condition, "commit_p99_ratio", "1", ratio)
	}
}

func (r *Result) checkpoints(l *lines) {
	for _, group := range []struct {
		condition   string
		checkpoints []Checkpoint
	}{
		{full, []Checkpoint{r.Full}},
		{incremental, r.Incremental},
		{on, r.loaded()},
	} {
		var bytes, index, took []float64
		for _, c := range group.checkpoints {
			bytes = append(bytes, megabytes(c.Bytes))
			index = append(index, megabytes(c.Index))
			took = append(took, c.Took.Seconds()*1e3)
		}
		l.add(group.condition, "ckpt_mb", "MB", bytes)
		l.add(group.condition, "ckpt_index_mb", "MB", index)
		l.add(group.condition, "ckpt_ms", "ms", took)
	}
}

// loaded returns the checkpoints that were done when their slice ended, or all
// if none were.
func (r *Result) loaded() []Checkpoint {
	var done, all []Checkpoint
	for _, s := range r.Slices {
		for _, c := range s.Checkpoints {
			if all = append(all, c); c.End() <= s.All.Time {
				done = append(done, c)
			}
		}
	}
	if len(done) == 0 {
		return all
	}
	return done
}

func (r *Result) timeline(l *lines) {
	for i := range r.Slices {
		s := &r.Slices[i]
		condition := off
		if s.On {
			condition = on
		}
		for w, n := range s.Windows {
			end := time.Duration(w+1) * Window
			l.base.At = (s.Begin + end).Seconds()
			l.add(condition, "timeline_tx_s", "1/s", []float64{float64(n) / Window.Seconds()})
			l.add(condition, "timeline_ckpt", "1", []float64{s.checkpointing(end-Window, end)})
		}
	}
	l.base.At = 0
}

// checkpointing is the share of a time in which a checkpoint ran.
func (s *Slice) checkpointing(from, to time.Duration) float64 {
	var sum time.Duration
	for i := range s.Checkpoints {
		c := &s.Checkpoints[i]
		sum += max(0, min(c.End(), to)-max(c.Begin, from))
	}
	return sum.Seconds() / (to - from).Seconds()
}

func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

// WriteTables shows the measurements to people.
func WriteTables(w io.Writer, measurements []bench.Measurement) error {
	circumstances := []string{"strategy", "rows", "checkpoints"}
	for i, names := range [][]string{
		{"tx_s", "commit_p50_us", "commit_p99_us", "commit_p999_us", "tx_loss_pct", "commit_p99_ratio", "index_mb", "peak_rss_mb"},
		{"ckpt_ms", "ckpt_mb", "ckpt_index_mb"},
	} {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := bench.WriteTable(w, measurements, circumstances, names); err != nil {
			return err
		}
	}
	return nil
}
