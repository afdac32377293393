package btree

import (
	"sync/atomic"
	"unsafe"
)

func loadWord(p unsafe.Pointer) uint64 { return atomic.LoadUint64((*uint64)(p)) }

func storeWord(p unsafe.Pointer, w uint64) {
	if plainStores {
		*(*uint64)(p) = w
	} else {
		atomic.StoreUint64((*uint64)(p), w)
	}
}

func loadHalf(p unsafe.Pointer) uint32 { return atomic.LoadUint32((*uint32)(p)) }

func storeHalf(p unsafe.Pointer, w uint32) {
	if plainStores {
		*(*uint32)(p) = w
	} else {
		atomic.StoreUint32((*uint32)(p), w)
	}
}

// moveWords copies n words; source and destination may overlap. A reader may
// see any mixture of old and new bytes, which its version check throws away.
func moveWords(dst, src unsafe.Pointer, n int) {
	switch {
	case plainStores:
		copy(unsafe.Slice((*uint64)(dst), n), unsafe.Slice((*uint64)(src), n))
	case uintptr(dst) < uintptr(src):
		for i := range n {
			storeWord(unsafe.Add(dst, 8*i), loadWord(unsafe.Add(src, 8*i)))
		}
	default:
		for i := n - 1; i >= 0; i-- {
			storeWord(unsafe.Add(dst, 8*i), loadWord(unsafe.Add(src, 8*i)))
		}
	}
}

// moveHalves is moveWords for 4-byte slots.
func moveHalves(dst, src unsafe.Pointer, n int) {
	switch {
	case plainStores:
		copy(unsafe.Slice((*uint32)(dst), n), unsafe.Slice((*uint32)(src), n))
	case uintptr(dst) < uintptr(src):
		for i := range n {
			storeHalf(unsafe.Add(dst, 4*i), loadHalf(unsafe.Add(src, 4*i)))
		}
	default:
		for i := n - 1; i >= 0; i-- {
			storeHalf(unsafe.Add(dst, 4*i), loadHalf(unsafe.Add(src, 4*i)))
		}
	}
}

func add8(p unsafe.Pointer, i int) unsafe.Pointer { return unsafe.Add(p, 8*i) }
func add4(p unsafe.Pointer, i int) unsafe.Pointer { return unsafe.Add(p, 4*i) }
