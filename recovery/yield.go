package recovery

import (
	"runtime"
	"slices"
)

// A checkpoint works beside transactions, perhaps on as few processors as two.
// A goroutine that computes for milliseconds on end keeps a committer that has
// just come back from the disk waiting for a processor, so the long loops of a
// checkpoint give theirs up after every yieldEvery steps, some 50 µs.
const yieldEvery = 256

// yielder counts steps. The zero value is ready.
type yielder int

func (y *yielder) step() {
	if *y++; *y%yieldEvery == 0 {
		runtime.Gosched()
	}
}

// sortYielding sorts like slices.SortFunc, but gives up the processor often. It
// is a merge sort on runs of a size that takes little time.
func sortYielding[E any](items []E, compare func(a, b E) int) []E {
	const run = 1 << 10
	for from := 0; from < len(items); from += run {
		slices.SortFunc(items[from:min(from+run, len(items))], compare)
		runtime.Gosched()
	}
	var y yielder
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
