package prefetch

import (
	"testing"
	"unsafe"
)

// TestLinesNeverFaults asks for memory that is there and for some that is not.
func TestLinesNeverFaults(t *testing.T) {
	b := make([]byte, 100)
	for n := -1; n < 20; n++ {
		Lines(unsafe.Pointer(&b[99]), n)
	}
	Lines(nil, 3)
	Lines(unsafe.Add(unsafe.Pointer(&b[0]), 1<<40), 1)
}
