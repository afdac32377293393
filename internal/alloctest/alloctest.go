// Package alloctest bounds what a decoder of untrusted bytes may allocate.
package alloctest

import (
	"runtime"
	"testing"
)

// Bound runs f and fails the test if the process allocated more on the Go heap
// meanwhile than base bytes and factor times the size of the input: then a length
// in the input was believed.
func Bound(t testing.TB, base, factor, input int, f func()) {
	t.Helper()
	before := allocated()
	f()
	if grown, limit := allocated()-before, uint64(base+factor*input); grown > limit {
		t.Fatalf("%d bytes allocated for an input of %d, the limit is %d", grown, input, limit)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
