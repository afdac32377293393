//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package arena

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeSize is the alignment of chunks: the huge page of amd64 and of arm64
// with 4 KiB pages.
const hugeSize = 2 << 20

// mapChunk maps a chunk without making its memory present.
func mapChunk(huge bool) (unsafe.Pointer, error) {
	p, err := unix.MmapPtr(-1, 0, nil, ChunkSize+hugeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	before := -uintptr(p) & (hugeSize - 1)
	chunk := unsafe.Add(p, before)
	if err := trim(p, before); err != nil {
		return nil, err
	}
	if err := trim(unsafe.Add(chunk, ChunkSize), hugeSize-before); err != nil {
		return nil, err
	}
	advise(chunk, huge)
	return chunk, nil
}

func trim(p unsafe.Pointer, n uintptr) error {
	if n == 0 {
		return nil
	}
	return unix.MunmapPtr(p, n)
}

func unmapChunk(p unsafe.Pointer) error { return unix.MunmapPtr(p, ChunkSize) }

func chunkBytes(p unsafe.Pointer) []byte { return unsafe.Slice((*byte)(p), ChunkSize) }
