//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows) && !race

package arena

import "unsafe"

// touch makes the pages of a chunk that nobody uses yet present.
func touch(p unsafe.Pointer) {
	for i := uintptr(0); i < ChunkSize; i += 4096 {
		*(*byte)(unsafe.Add(p, i)) = 0
	}
}
