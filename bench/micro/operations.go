package micro

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// caller is what one goroutine calls with. Its buffers are there to be reused:
// a benchmark that allocates measures the collector too.
type caller struct {
	Session
	*rand.Rand
	value []byte
	keys  []uint64
}

// operation is one call.
type operation func(c *caller) error

// newCaller gives every caller its own random numbers, also those of repeated
// runs: a store may notice that an update writes what is there already.
func (f *fixture) newCaller(s Store) (*caller, error) {
	session, err := s.Session()
	if err != nil {
		return nil, err
	}
	f.callers++
	return &caller{
		Session: session,
		Rand:    rand.New(rand.NewPCG(f.callers, callerStream)),
		value:   make([]byte, 0, ValueSize),
		keys:    make([]uint64, many),
	}, nil
}

// callerStream keeps the random numbers of callers apart from those of rows.
const callerStream = 1 << 40

// parallel splits b.N calls over goroutines, each with a session of its own,
// and reports calls a second as unit.
func (f *fixture) parallel(b *testing.B, store Store, goroutines int, unit string, op operation) {
	b.Helper()
	b.StopTimer()
	callers := make([]*caller, goroutines)
	for i := range callers {
		var err error
		if callers[i], err = f.newCaller(store); err != nil {
			b.Fatal(err)
		}
	}
	errs := make([]error, goroutines)
	var group sync.WaitGroup
	b.StartTimer()
	for i, c := range callers {
		calls := b.N / goroutines
		if i < b.N%goroutines {
			calls++
		}
		group.Go(func() { errs[i] = repeat(c, calls, op) })
	}
	group.Wait()
	b.StopTimer()
	for i, c := range callers {
		if err := errors.Join(errs[i], c.Close()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit)
}

func repeat(c *caller, calls int, op operation) error {
	for range calls {
		if err := op(c); err != nil {
			return err
		}
	}
	return nil
}

// The operations.

func (f *fixture) key(r *rand.Rand) uint64 { return r.Uint64N(uint64(f.rows)) }

func (f *fixture) read(c *caller) error { return c.Read(f.key(c.Rand)) }

// many is the number of rows of the operations that take several.
const many = 100

func (f *fixture) readMany(c *caller) error {
	for i := range c.keys {
		c.keys[i] = f.key(c.Rand)
	}
	return c.ReadMany(c.keys)
}

var errShortScan = errors.New("a scan returned another number of rows than there are")

func (f *fixture) scan(c *caller) error {
	key := f.key(c.Rand)
	n, err := c.Scan(key, many)
	if err == nil && n != min(many, f.rows-int(key)) {
		err = errShortScan
	}
	return err
}

func (f *fixture) update(c *caller) error {
	return c.Update(f.key(c.Rand), AppendValue(c.value, c.Uint64(), 1))
}

// Their benchmarks.

func (f *fixture) benchmarkRead(b *testing.B, goroutines int) {
	f.parallel(b, f.open(b, true), goroutines, "tx/s", f.read)
}

func (f *fixture) benchmarkReadMany(b *testing.B) {
	f.parallel(b, f.open(b, true), 1, "tx/s", f.readMany)
	b.ReportMetric(many*float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}

func (f *fixture) benchmarkScan(b *testing.B) {
	f.parallel(b, f.open(b, true), 1, "scans/s", f.scan)
}

func (f *fixture) benchmarkUpdate(b *testing.B, durable bool, goroutines int) {
	f.parallel(b, f.open(b, durable), goroutines, "tx/s", f.update)
}

// benchmarkCollect measures whole garbage collections, while a goroutine
// reads, and the heap that they have to mark.
func (f *fixture) benchmarkCollect(b *testing.B) {
	store := f.open(b, true)
	stop := f.readInBackground(b, store)
	runtime.GC() // what the load left behind
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for range b.N {
		runtime.GC()
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	stop()
	pause := time.Duration(after.PauseTotalNs-before.PauseTotalNs) / time.Duration(after.NumGC-before.NumGC)
	b.ReportMetric(float64(pause.Nanoseconds())/1e3, "pause-µs")
	b.ReportMetric(float64(longestPause(&after, before.NumGC).Nanoseconds())/1e3, "longest-pause-µs")
	b.ReportMetric(float64(after.HeapAlloc)/(1<<20), "heap-MiB")
	if m, ok := store.(Measured); ok {
		for unit, value := range m.Memory() {
			b.ReportMetric(value, unit)
		}
	}
}

// longestPause looks at the collections since number from, as far as the
// statistics reach back.
func longestPause(m *runtime.MemStats, from uint32) time.Duration {
	kept := uint32(len(m.PauseNs))
	var longest uint64
	for n := max(from, m.NumGC-min(m.NumGC, kept)); n < m.NumGC; n++ {
		longest = max(longest, m.PauseNs[n%kept])
	}
	return time.Duration(longest)
}

// readInBackground reads random rows until the function it returns is called.
func (f *fixture) readInBackground(b *testing.B, store Store) (stop func()) {
	b.Helper()
	c, err := f.newCaller(store)
	if err != nil {
		b.Fatal(err)
	}
	quit, done := make(chan struct{}), make(chan error)
	go func() {
		err := f.readUntil(quit, c)
		<-quit
		done <- errors.Join(err, c.Close())
	}()
	return func() {
		close(quit)
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func (f *fixture) readUntil(quit <-chan struct{}, c *caller) error {
	for {
		select {
		case <-quit:
			return nil
		default:
		}
		if err := f.read(c); err != nil {
			return err
		}
	}
}
