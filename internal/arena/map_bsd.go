//go:build (darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package arena

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// advise does nothing: these systems choose page sizes themselves.
func advise(unsafe.Pointer, bool) {}

func populate(p unsafe.Pointer) { touch(p) }

// discard gives memory back. Refusal costs memory, nothing else.
func discard(p unsafe.Pointer) { _ = unix.Madvise(chunkBytes(p), unix.MADV_FREE) }

func discardPages(_, p unsafe.Pointer, n int) {
	_ = unix.Madvise(unsafe.Slice((*byte)(p), n), unix.MADV_FREE)
}
