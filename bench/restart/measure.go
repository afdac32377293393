package restart

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/latency"
	"github.com/rekindledb/rekindle/bench/task"
	"github.com/rekindledb/rekindle/bench/usage"
)

// Window is the resolution of the series.
const Window = 100 * time.Millisecond

// firstReads is the number of reads that one figure is about.
const firstReads = 10_000

// Sample is what one process measured. Times count from the call of Open.
type Sample struct {
	Open      time.Duration
	FirstRead time.Duration
	Reads10k  time.Duration
	Windows   []Reads
	AtReads   usage.Usage // after the 10,000 reads
	AtEnd     usage.Usage
	Recovery  rekindle.RecoveryReport
	Index     int64 // bytes of memory, after the 10,000 reads
}

// Reads are those that ended within one window.
type Reads struct {
	Count  int64
	Median time.Duration // 0 if there are none
}

type measureConfig struct {
	base
	Seed    uint64
	Reading time.Duration
}

// measure opens the database, reads, reports and waits to be killed: it must
// not close the database, for that would change it.
func measure(ctx context.Context, config []byte, r *task.Reporter) error {
	var c measureConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	if err := readProgram(); err != nil {
		return err
	}
	before, err := usage.Read(c.Dir)
	if err != nil {
		return err
	}
	m := &measurer{config: &c, rng: rand.New(rand.NewPCG(c.Seed, 1)), progress: r.Progress}
	if err := m.run(ctx); err != nil {
		return err
	}
	m.sample.AtReads.Since(before)
	if err := r.Result(&m.sample); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// readProgram brings this program into the page cache, where it was before the
// cache was dropped: what it maps of itself is not what is measured.
func readProgram() error {
	name, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, f); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

type measurer struct {
	config   *measureConfig
	rng      *rand.Rand
	progress func(phase string, done, total int64)
	sample   Sample
	start    time.Time // of Open

	db      *rekindle.DB
	session dataset.Session
	key     uint64
	get     func(tx *rekindle.Tx) error

	reads  int
	window latency.Histogram // reads of the window that comes next in the sample
}

func (m *measurer) run(ctx context.Context) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	windows := int((m.sample.Open + m.config.Reading + Window - 1) / Window)
	began := time.Now()
	for len(m.sample.Windows) < windows || m.reads < firstReads {
		if err := m.read(ctx); err != nil {
			return err
		}
		ended := time.Now()
		if err := m.note(ended.Sub(m.start), ended.Sub(began)); err != nil {
			return err
		}
		began = time.Now()
	}
	var err error
	m.sample.AtEnd, err = usage.Read(m.config.Dir)
	return err
}

// open leaves an open database behind, whatever comes: the process ends next.
func (m *measurer) open(ctx context.Context) (err error) {
	m.start = time.Now()
	if m.db, err = m.config.openDB(ctx); err != nil {
		return err
	}
	m.sample.Open = time.Since(m.start)
	table, err := dataset.Open(ctx, m.db, m.config.Indexes)
	if err != nil {
		return err
	}
	m.session = table.Session()
	m.get = func(tx *rekindle.Tx) error { return m.session.Get(tx, m.key) }
	m.sample.Recovery = m.db.RecoveryReport()
	return nil
}

func (m *measurer) read(ctx context.Context) error {
	m.key = dataset.Key(m.rng.Uint64N(uint64(m.config.Rows)))
	return m.db.View(ctx, m.get)
}

// note counts a read that ended at a time since the call of Open.
func (m *measurer) note(at, took time.Duration) (err error) {
	for at >= time.Duration(len(m.sample.Windows)+1)*Window {
		m.endWindow()
	}
	m.window.Record(took)
	m.reads++
	switch m.reads {
	case 1:
		m.sample.FirstRead = at
	case firstReads:
		m.sample.Reads10k = at
		m.sample.Index = m.db.Stats().IndexBytes
		m.sample.AtReads, err = usage.Read(m.config.Dir)
	}
	return err
}

func (m *measurer) endWindow() {
	m.sample.Windows = append(m.sample.Windows, Reads{int64(m.window.Count()), m.window.Quantile(0.5)})
	m.window = latency.Histogram{}
	m.progress("reading for window", int64(len(m.sample.Windows)), int64((m.sample.Open+m.config.Reading)/Window))
}

// A window is steady if its median is within steadyFactor of the final one: the
// median over the last finalWindows windows.
const (
	steadyFactor = 1.2
	finalWindows = 10
)

// Steady returns the end of the first steady window, 0 if there were no reads.
func (s *Sample) Steady() time.Duration {
	last := s.Windows[max(0, len(s.Windows)-finalWindows):]
	var medians []float64
	for _, w := range last {
		if w.Count > 0 {
			medians = append(medians, float64(w.Median))
		}
	}
	if len(medians) == 0 {
		return 0
	}
	limit := bench.Median(medians) * steadyFactor
	for i, w := range s.Windows {
		if w.Count > 0 && float64(w.Median) <= limit {
			return time.Duration(i+1) * Window
		}
	}
	return 0
}
