//go:build windows && !race

package arena

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapChunk(bool) (unsafe.Pointer, error) {
	p, err := windows.VirtualAlloc(0, ChunkSize, windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// Not a Go pointer, so the conversion of an integer is sound; vet cannot
	// know.
	return *(*unsafe.Pointer)(unsafe.Pointer(&p)), nil
}

func unmapChunk(p unsafe.Pointer) error {
	return windows.VirtualFree(uintptr(p), 0, windows.MEM_RELEASE)
}

// advise does nothing: the system chooses page sizes itself.
func advise(unsafe.Pointer, bool) {}

func populate(p unsafe.Pointer) { touch(p) }

// discard tells the system that the content need not be kept. Refusal costs
// memory, nothing else.
func discard(p unsafe.Pointer) {
	_, _ = windows.VirtualAlloc(uintptr(p), ChunkSize, windows.MEM_RESET, windows.PAGE_READWRITE)
}

func discardPages(_, p unsafe.Pointer, n int) {
	_, _ = windows.VirtualAlloc(uintptr(p), uintptr(n), windows.MEM_RESET, windows.PAGE_READWRITE)
}
