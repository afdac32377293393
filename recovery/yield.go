package recovery

import (
	"runtime"
	"slices"
	"time"
)

// A checkpoint works beside transactions, perhaps on as few processors as two.
// A goroutine that computes on end is preempted after 10 ms only, and so long a
// committer that has just come back from the disk waits for a processor. The
// long loops of a checkpoint give theirs up after a millisecond. Not more often:
// where goroutines that never block are waiting, each time costs 10 ms for every
// one of them.
const (
	yieldAfter  = time.Millisecond
	stepsToLook = 256 // some 50 µs
)

// yielder gives up the processor now and then. The zero value is ready.
type yielder struct {
	steps int
	last  time.Time
}

func (y *yielder) step() {
	if y.steps++; y.steps%stepsToLook == 0 {
		y.look()
	}
}

func (y *yielder) look() {
	if now := time.Now(); now.Sub(y.last) > yieldAfter {
		runtime.Gosched()
		y.last = time.Now()
	}
}

// sortYielding sorts like slices.SortFunc, but gives up the processor now and
// then. It is a merge sort on runs of a size that takes little time.
func sortYielding[E any](items []E, compare func(a, b E) int) []E {
	const run = 1 << 10
	var y yielder
	for from := 0; from < len(items); from += run {
		slices.SortFunc(items[from:min(from+run, len(items))], compare)
		y.look()
	}
	other := make([]E, 0, len(items))
	for size := run; size < len(items); size *= 2 {
		other = other[:0]
		for from := 0; from < len(items); from += 2 * size {
			middle, end := min(from+size, len(items)), min(from+2*size, len(items))
			other = merge(other, items[from:middle], items[middle:end], compare, &y)
		}
		items, other = other, items
	}
	return items
}

// merge appends two sorted lists to dst in order.
func merge[E any](dst, a, b []E, compare func(a, b E) int, y *yielder) []E {
	for len(a) > 0 && len(b) > 0 {
		y.step()
		if compare(b[0], a[0]) < 0 {
			dst, b = append(dst, b[0]), b[1:]
		} else {
			dst, a = append(dst, a[0]), a[1:]
		}
	}
	return append(append(dst, a...), b...)
}
