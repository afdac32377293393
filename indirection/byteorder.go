package indirection

import "encoding/binary"

// hostIsLittle is known to the compiler.
func hostIsLittle() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// toHostOrder turns a page in file order, little-endian, into words of this
// machine.
func toHostOrder(page []byte) {
	if hostIsLittle() {
		return
	}
	for i := 0; i < len(page); i += wordBytes {
		binary.NativeEndian.PutUint64(page[i:], binary.LittleEndian.Uint64(page[i:]))
	}
}
