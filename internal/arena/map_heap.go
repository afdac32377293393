//go:build race || !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package arena

import "unsafe"

// mapChunk takes a chunk from the Go heap, where the race detector sees every
// access. The chunk table keeps it alive. Objects of this size start at a
// page of the runtime, 8 KiB.
func mapChunk(bool) (unsafe.Pointer, error) {
	return unsafe.Pointer(unsafe.SliceData(make([]byte, ChunkSize))), nil
}

func unmapChunk(unsafe.Pointer) error { return nil }
func advise(unsafe.Pointer, bool)     {}
func populate(unsafe.Pointer)         {}
func discard(unsafe.Pointer)          {}

func discardPages(_, _ unsafe.Pointer, _ int) {}
