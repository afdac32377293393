package logstream

import (
	"fmt"
	"math/bits"
)

// Position is a byte position in one stream. Positions are logical: they
// start at 0 in a new database, never restart and never mean other bytes
// later. Segments, rounds, frames and records begin at multiples of 8.
type Position uint64

// Address names one record of the log: which stream, where, and about how
// large it is, so that one read fetches it. It is the form in which an
// indirection slot points into the log.
//
//	bit  63     always set (tells an address from a memory reference)
//	bits 62-56  size class of the record
//	bits 55-50  stream
//	bits 49-0   position / 8
//
// The zero value is no address.
type Address uint64

const (
	// MaxStreams is how many streams of rounds a log may have. Stream 63 is
	// set aside for extents.
	MaxStreams = 63

	// MaxPosition bounds positions: it is one past the last byte that an
	// address can name.
	MaxPosition Position = 1 << (positionBits + positionShift)

	addressFlag = 1 << 63

	positionBits  = 50
	positionShift = 3
	positionMask  = 1<<positionBits - 1
	streamShift   = positionBits
	streamMask    = 1<<6 - 1
	classShift    = streamShift + 6
	classMask     = 1<<7 - 1
)

// Size classes are small floating point numbers in units of 8 bytes: classes
// 0-15 are exact, after that each doubling has eight steps, so a bound is less
// than 12.5 % above the size it was made from.
const (
	classUnitShift    = 3
	classMantissaBits = 3
	classLast         = classMask - 1 // the largest class with a bound
	classUnbounded    = classMask     // larger than the table

	// MaxClassBytes is the largest size that a size class can bound.
	MaxClassBytes = ((classLast & 7) | 8) << (classLast>>classMantissaBits - 1 + classUnitShift)
)

// MakeAddress names the record of size bytes at p in a stream. The position
// is a multiple of 8 below MaxPosition; the stream is below 64.
func MakeAddress(stream int, p Position, size int) Address {
	return Address(addressFlag |
		sizeClass(size)<<classShift |
		uint64(stream&streamMask)<<streamShift |
		uint64(p)>>positionShift&positionMask)
}

// IsValid reports whether a is an address at all.
func (a Address) IsValid() bool { return a&addressFlag != 0 }

// Stream is the stream that holds the record.
func (a Address) Stream() int { return int(a >> streamShift & streamMask) }

// Position is where the record begins in its stream.
func (a Address) Position() Position { return Position(a&positionMask) << positionShift }

// SizeBound is at least the record's size and less than 12.5 % above it. It is
// 0 for a record above MaxClassBytes: read its header to learn its size.
func (a Address) SizeBound() int { return classBound(uint64(a >> classShift & classMask)) }

func (a Address) String() string {
	if !a.IsValid() {
		return fmt.Sprintf("invalid log address %#x", uint64(a))
	}
	return fmt.Sprintf("log %d:%#x", a.Stream(), uint64(a.Position()))
}

// sizeClass is the smallest class whose bound is at least size.
func sizeClass(size int) uint64 {
	if size > MaxClassBytes {
		return classUnbounded
	}
	units := (uint64(size) + 1<<classUnitShift - 1) >> classUnitShift
	if units < 1<<classMantissaBits {
		return units
	}
	shift := uint64(bits.Len64(units) - classMantissaBits - 1)
	mantissa := (units + 1<<shift - 1) >> shift
	return shift<<classMantissaBits + mantissa
}

func classBound(class uint64) int {
	if class == classUnbounded {
		return 0
	}
	if class < 1<<(classMantissaBits+1) {
		return int(class << classUnitShift)
	}
	shift := class>>classMantissaBits - 1
	mantissa := class&(1<<classMantissaBits-1) | 1<<classMantissaBits
	return int(mantissa << (shift + classUnitShift))
}
