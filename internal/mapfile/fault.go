package mapfile

import "runtime/debug"

// Locator knows where its mappings lie.
type Locator interface {
	// FaultAt returns what to report for a memory fault at an address: nil if
	// it is in none of the mappings, and so a fault of the program.
	FaultAt(address uintptr) error
}

// Catch turns a memory fault in a mapping into an error: the medium failed to
// deliver a page, or the file was cut. It is deferred around every access to
// mapped bytes, with the result of SetPanicOnFault(true):
//
//	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
//
// Both together take a few nanoseconds and do not allocate.
func Catch(before bool, l Locator, err *error) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	if f, ok := r.(interface{ Addr() uintptr }); ok {
		if e := l.FaultAt(f.Addr()); e != nil {
			*err = e
			return
		}
	}
	panic(r) //lint:panic it was not ours
}
