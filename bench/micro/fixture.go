package micro

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// fixture is the store that the benchmarks of one system and size share.
type fixture struct {
	system System
	rows   int
	dir    string

	loaded  bool
	store   Store
	durable bool // of the open store
	callers uint64
}

func (f *fixture) path() string { return filepath.Join(f.dir, f.system.Name) }

// open returns the loaded store in the mode asked for; the timer stands still
// meanwhile.
func (f *fixture) open(b *testing.B, durable bool) Store {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	if !f.loaded {
		f.empty(b)
		f.load(b, Keys(f.rows))
	}
	if f.store != nil && f.durable != durable {
		f.close(b)
	}
	if f.store == nil {
		f.store, f.durable = f.mustOpen(b, durable), durable
		f.warm(b)
	}
	return f.store
}

// warm reads every row, so that what follows does not measure how rows come
// into memory after an open; benchmarkRecovery does that.
func (f *fixture) warm(b *testing.B) {
	b.Helper()
	c, err := f.newCaller(f.store)
	if err != nil {
		b.Fatal(err)
	}
	for key := 0; key < f.rows && err == nil; key++ {
		err = c.Read(uint64(key))
	}
	if err := errors.Join(err, c.Close()); err != nil {
		b.Fatal(err)
	}
}

func (f *fixture) mustOpen(b *testing.B, durable bool) Store {
	b.Helper()
	store, err := f.system.Open(f.path(), durable)
	if err != nil {
		b.Fatalf("open %s: %v", f.system.Name, err)
	}
	return store
}

// empty opens a new database in the place of the last one.
func (f *fixture) empty(b *testing.B) {
	b.Helper()
	f.close(b)
	if err := os.RemoveAll(f.path()); err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(f.path(), 0o755); err != nil {
		b.Fatal(err)
	}
	f.store, f.durable, f.loaded = f.mustOpen(b, true), true, false
}

func (f *fixture) load(b *testing.B, keys []uint64) {
	b.Helper()
	if err := f.store.Load(keys); err != nil {
		b.Fatalf("load %s: %v", f.system.Name, err)
	}
	f.loaded = true
}

func (f *fixture) close(b *testing.B) {
	b.Helper()
	if f.store == nil {
		return
	}
	err := f.store.Close()
	f.store = nil
	if err != nil {
		b.Fatalf("close %s: %v", f.system.Name, err)
	}
}

// benchmarkLoad measures whole loads; the benchmarks after it use the last.
func (f *fixture) benchmarkLoad(b *testing.B) {
	keys := Keys(f.rows)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		f.empty(b)
		b.StartTimer()
		f.load(b, keys)
	}
	b.StopTimer()
	b.ReportMetric(float64(f.rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
