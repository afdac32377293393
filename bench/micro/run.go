package micro

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

const (
	rowsVariable = "REKINDLE_BENCH_ROWS"
	defaultRows  = 1_000_000
	shortRows    = 10_000 // with -short
)

// Run benchmarks the systems, for each number of rows one after the other.
func Run(b *testing.B, systems []System) {
	sizes, err := rowsOf(os.Getenv(rowsVariable), testing.Short())
	if err != nil {
		b.Fatal(err)
	}
	for _, rows := range sizes {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			for _, system := range systems {
				b.Run("store="+system.Name, func(b *testing.B) {
					runSystem(b, &fixture{system: system, rows: rows, dir: b.TempDir()})
				})
			}
		})
	}
}

func rowsOf(list string, short bool) ([]int, error) {
	if list == "" && short {
		return []int{shortRows}, nil
	}
	if list == "" {
		return []int{defaultRows}, nil
	}
	var sizes []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: %q is not a number of rows", rowsVariable, s)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// runSystem runs what needs a durable store first, so that it is opened once.
func runSystem(b *testing.B, f *fixture) {
	b.Cleanup(func() { f.close(b) })
	b.Run("load", f.benchmarkLoad)
	b.Run("collect", f.benchmarkCollect)
	for _, goroutines := range []int{1, 2} {
		b.Run(fmt.Sprintf("read/goroutines=%d", goroutines), func(b *testing.B) { f.benchmarkRead(b, goroutines) })
	}
	b.Run("read-100/goroutines=1", f.benchmarkReadMany)
	b.Run("scan-100/goroutines=1", f.benchmarkScan)
	for _, goroutines := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("update-durable/goroutines=%d", goroutines), func(b *testing.B) {
			f.benchmarkUpdate(b, true, goroutines)
		})
	}
	b.Run("update-durable-beside-floor/goroutines=1", f.benchmarkFloor)
	b.Run("recovery", f.benchmarkRecovery)
	b.Run("update/goroutines=1", func(b *testing.B) { f.benchmarkUpdate(b, false, 1) })
}
