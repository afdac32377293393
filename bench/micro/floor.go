package micro

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rekindledb/rekindle/internal/vfs"
)

const (
	floorBytes = 512      // of one append: a small commit in whole sectors
	floorFile  = 16 << 20 // zeroed beforehand; then from the start again
	floorBlock = 16       // calls of one kind in a row
)

// floor is the least that a durable commit can cost: an append to zero-filled
// space and an fdatasync.
type floor struct {
	file vfs.File
	at   int64
	data []byte
}

func newFloor(path string) (*floor, error) {
	file, err := vfs.OS().Create(path)
	if err != nil {
		return nil, err
	}
	_, err = file.WriteAt(make([]byte, floorFile), 0)
	if err = errors.Join(err, file.Sync()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	data := make([]byte, floorBytes)
	for i := range data {
		data[i] = byte(i) | 1
	}
	return &floor{file: file, data: data}, nil
}

func (w *floor) append() error {
	if _, err := w.file.WriteAt(w.data, w.at); err != nil {
		return err
	}
	w.at = (w.at + floorBytes) % floorFile
	return w.file.Datasync()
}

// benchmarkFloor alternates durable updates with bare appends to a file beside
// the store, so that both see the same disk, and compares them.
func (f *fixture) benchmarkFloor(b *testing.B) {
	store := f.open(b, true)
	b.StopTimer()
	c, err := f.newCaller(store)
	if err != nil {
		b.Fatal(err)
	}
	w, err := newFloor(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	var updates, appends time.Duration
	b.StartTimer()
	for done := 0; done < b.N; done += floorBlock {
		n := min(floorBlock, b.N-done)
		updates += timed(b, n, func() error { return f.update(c) })
		appends += timed(b, n, w.append)
	}
	b.StopTimer()
	if err := errors.Join(c.Close(), w.file.Close()); err != nil {
		b.Fatal(err)
	}
	perOp := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) / 1e3 }
	b.ReportMetric(0, "ns/op") // of both together: says nothing
	b.ReportMetric(perOp(updates), "update-µs")
	b.ReportMetric(perOp(appends), "floor-µs")
	b.ReportMetric(100*appends.Seconds()/updates.Seconds(), "%-of-floor-rate")
}

func timed(b *testing.B, n int, call func() error) time.Duration {
	b.Helper()
	start := time.Now()
	for range n {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}
