// Package invariants holds the checks that only test builds pay for.
//
// They are compiled in under the build tag "invariants" and under the race
// detector, and to nothing otherwise:
//
//	if invariants.Enabled && count > limit {
//		invariants.Fail("page %d holds %d slots, limit %d", page, count, limit)
//	}
package invariants

import "fmt"

// Fail reports a broken invariant: a bug of this module, never of its input.
// It panics, so that the test that provoked it stops at the place.
func Fail(format string, args ...any) {
	panic("rekindle: broken invariant: " + fmt.Sprintf(format, args...))
}

// Mangle overwrites b in test builds. It is called on buffers whose lifetime
// has ended, so that a caller that kept one is caught.
func Mangle(b []byte) {
	if !Enabled {
		return
	}
	for i := range b {
		b[i] = 0xCC
	}
}
