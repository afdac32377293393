//go:build linux && !race

package arena

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Advice can be refused, by old kernels or configurations. Nothing depends on
// it, so its errors carry no news.

// advise chooses the kind of pages that the first touch brings.
func advise(p unsafe.Pointer, huge bool) {
	advice := unix.MADV_NOHUGEPAGE
	if huge {
		advice = unix.MADV_HUGEPAGE
	}
	_ = unix.Madvise(chunkBytes(p), advice)
}

// populate makes the memory of a chunk present that nobody uses yet. A system
// call does it, not a touch: the runtime runs other goroutines meanwhile, and
// a collection can stop the world.
func populate(p unsafe.Pointer) {
	if unix.Madvise(chunkBytes(p), unix.MADV_POPULATE_WRITE) == unix.EINVAL {
		touch(p)
	}
}

// discard gives memory back; the chunk reads as zeroes from then on.
func discard(p unsafe.Pointer) {
	_ = unix.Madvise(chunkBytes(p), unix.MADV_DONTNEED)
}

// discardPages gives a part of a chunk back, which reads as zeroes from then on. A
// chunk with such holes gets no more huge pages, which would fill them.
func discardPages(chunk, p unsafe.Pointer, n int) {
	advise(chunk, false)
	_ = unix.Madvise(unsafe.Slice((*byte)(p), n), unix.MADV_DONTNEED)
}
