package micro

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekindledb/rekindle/bench/child"
)

// writerVariable holds the JSON of a writer in the environment of the process
// that is to be one.
const writerVariable = "REKINDLE_BENCH_WRITER"

// killAfter is how long the writer writes before it is killed.
const (
	killAfter      = 2 * time.Second
	killAfterShort = 200 * time.Millisecond // with -short
	writers        = 16
	warmReads      = 10_000 // after the first read
)

// writer is a process that updates random rows durably until it is killed.
type writer struct {
	System string
	Dir    string
	Rows   int
	Seed   uint64 // of its first caller
}

// Main is TestMain for the package that calls Run: in the other process of the
// recovery benchmark it is the writer.
func Main(m *testing.M, systems []System) int {
	config := os.Getenv(writerVariable)
	if config == "" {
		return m.Run()
	}
	if err := serve(config, systems, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "writer:", err)
		return 1
	}
	return 0
}

func serve(config string, systems []System, out io.Writer) error {
	var w writer
	if err := json.Unmarshal([]byte(config), &w); err != nil {
		return err
	}
	for _, s := range systems {
		if s.Name == w.System {
			return w.run(s, out)
		}
	}
	return fmt.Errorf("no store is called %q", w.System)
}

func (w *writer) run(system System, out io.Writer) error {
	store, err := system.Open(w.Dir, true)
	if err != nil {
		return err
	}
	var acknowledged atomic.Uint64
	errs := make(chan error, writers+1)
	f := &fixture{rows: w.Rows, callers: w.Seed}
	for range writers {
		c, err := f.newCaller(store)
		if err != nil {
			return err
		}
		go func() { errs <- updateForever(f, c, &acknowledged) }()
	}
	go func() { errs <- report(out, &acknowledged) }()
	return <-errs
}

func updateForever(f *fixture, c *caller, acknowledged *atomic.Uint64) error {
	for {
		if err := f.update(c); err != nil {
			return err
		}
		acknowledged.Add(1)
	}
}

// report writes the count of updates again and again, from the first one on.
func report(out io.Writer, acknowledged *atomic.Uint64) error {
	for {
		if n := acknowledged.Load(); n > 0 {
			if err := binary.Write(out, binary.LittleEndian, n); err != nil {
				return err
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// benchmarkRecovery kills a writer and measures what comes then. The time of
// an iteration is that of all of it, so there is one unless asked for more.
func (f *fixture) benchmarkRecovery(b *testing.B) {
	f.open(b, true)
	f.close(b)
	var acknowledged uint64
	var open, first, warm time.Duration
	measures := map[string]float64{}
	for range b.N {
		n, err := f.killWriter()
		if err != nil {
			b.Fatal(err)
		}
		acknowledged += n
		store, times := f.recover(b)
		open, first, warm = open+times.open, first+times.first, warm+times.warm
		if m, ok := store.(Measured); ok {
			for unit, value := range m.Recovery() {
				measures[unit] += value
			}
		}
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
	perRun := func(unit string, value float64) { b.ReportMetric(value/float64(b.N), unit) }
	b.ReportMetric(0, "ns/op")
	perRun("acknowledged", float64(acknowledged))
	perRun("open-ms", milliseconds(open))
	perRun("first-read-ms", milliseconds(first))
	perRun("10k-reads-ms", milliseconds(warm))
	for unit, value := range measures {
		perRun(unit, value)
	}
}

// killWriter returns how many updates were acknowledged, as the writer last
// said.
func (f *fixture) killWriter() (uint64, error) {
	config, err := json.Marshal(writer{System: f.system.Name, Dir: f.path(), Rows: f.rows, Seed: f.callers})
	f.callers += writers
	if err != nil {
		return 0, err
	}
	executable, err := os.Executable()
	if err != nil {
		return 0, err
	}
	p, err := child.Start(executable, nil, []string{writerVariable + "=" + string(config)}, os.Stderr)
	if err != nil {
		return 0, err
	}
	count, readErr := killDuring(p)
	return count, errors.Join(readErr, p.Output().Close())
}

// killDuring kills the process some time after its first report and reads on
// to the last one.
func killDuring(p *child.Process) (uint64, error) {
	life := killAfter
	if testing.Short() {
		life = killAfterShort
	}
	var killing sync.WaitGroup
	var killErr error
	var count uint64
	for n := 0; ; n++ {
		err := binary.Read(p.Output(), binary.LittleEndian, &count)
		if err != nil && n == 0 {
			return 0, errors.Join(fmt.Errorf("the writer ended before its first update: %w", err), p.Kill())
		}
		if err != nil { // the end of the pipe: the process is gone
			killing.Wait()
			return count, killErr
		}
		if n == 0 {
			killing.Go(func() {
				time.Sleep(life)
				killErr = p.Kill()
			})
		}
	}
}

// recoveryTimes are counted from the call of Open.
type recoveryTimes struct{ open, first, warm time.Duration }

func (f *fixture) recover(b *testing.B) (Store, recoveryTimes) {
	b.Helper()
	var times recoveryTimes
	start := time.Now()
	store := f.mustOpen(b, true)
	times.open = time.Since(start)
	c, err := f.newCaller(store)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1 + warmReads {
		if err := f.read(c); err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			times.first = time.Since(start)
		}
	}
	times.warm = time.Since(start)
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	return store, times
}
