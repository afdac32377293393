package logstream

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// OldKeys are the keys that a change takes away from a row, as its record
// carries them: a bitmap of indexes and, for each of these, the key. Without any
// there are no bytes.
type OldKeys []byte

const oldKeysMask = 8 // bytes of the bitmap

var errOldKeys = errors.New("old keys are cut short")

// AppendOldKey adds the key of an index to the OldKeys that begin at from in dst.
// Indexes come in ascending order.
func AppendOldKey(dst []byte, from, index int, key []byte) []byte {
	if len(dst) == from {
		dst = append(dst, make([]byte, oldKeysMask)...)
	}
	mask := binary.LittleEndian.Uint64(dst[from:]) | 1<<uint(index)
	binary.LittleEndian.PutUint64(dst[from:], mask)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(dst, key...)
}

// Indexes returns the bitmap.
func (k OldKeys) Indexes() (mask uint64, err error) {
	switch {
	case len(k) == 0:
		return 0, nil
	case len(k) < oldKeysMask:
		return 0, errOldKeys
	}
	return binary.LittleEndian.Uint64(k), nil
}

// Each calls f with the keys, in the order of their indexes.
func (k OldKeys) Each(f func(index int, key []byte)) error {
	mask, err := k.Indexes()
	if err != nil || mask == 0 {
		return err
	}
	for k = k[oldKeysMask:]; mask != 0; mask &= mask - 1 {
		n, width := binary.Uvarint(k)
		if width <= 0 || n > uint64(len(k)-width) {
			return errOldKeys
		}
		f(bits.TrailingZeros64(mask), k[width:][:n:n])
		k = k[width+int(n):]
	}
	return nil
}
