package keyenc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
)

// DecodeNull reads the marker of a nullable column. When null is false a
// value follows in rest.
func DecodeNull(key []byte) (null bool, rest []byte, err error) {
	if len(key) == 0 || key[0] > markPresent {
		return false, nil, malformed("no NULL marker")
	}
	return key[0] == markNull, key[1:], nil
}

// DecodeBool reads a bool component.
func DecodeBool(key []byte) (v bool, rest []byte, err error) {
	if len(key) == 0 || key[0] > 1 {
		return false, nil, malformed("no bool")
	}
	return key[0] == 1, key[1:], nil
}

// DecodeInt reads a signed component of width 1, 2, 4 or 8 bytes.
func DecodeInt(key []byte, width int) (v int64, rest []byte, err error) {
	u, rest, err := DecodeUint(key, width)
	if err != nil {
		return 0, nil, err
	}
	shift := 64 - 8*width
	return int64((u^(1<<(8*width-1)))<<shift) >> shift, rest, nil
}

// DecodeUint reads an unsigned component of width 1, 2, 4 or 8 bytes.
func DecodeUint(key []byte, width int) (v uint64, rest []byte, err error) {
	if len(key) < width {
		return 0, nil, malformed("%d bytes left, %d needed", len(key), width)
	}
	switch width {
	case 1:
		v = uint64(key[0])
	case 2:
		v = uint64(binary.BigEndian.Uint16(key))
	case 4:
		v = uint64(binary.BigEndian.Uint32(key))
	default:
		v = binary.BigEndian.Uint64(key)
	}
	return v, key[width:], nil
}

// DecodeFloat64 reads a float64 component.
func DecodeFloat64(key []byte) (v float64, rest []byte, err error) {
	u, rest, err := DecodeUint(key, 8)
	if err != nil {
		return 0, nil, err
	}
	if u&sign64 != 0 {
		u &^= sign64
	} else {
		u = ^u
	}
	v = math.Float64frombits(u)
	if u == sign64 || v != v && u != nan64 {
		return 0, nil, malformed("float64 bits %#x", u)
	}
	return v, rest, nil
}

// DecodeFloat32 reads a float32 component.
func DecodeFloat32(key []byte) (v float32, rest []byte, err error) {
	w, rest, err := DecodeUint(key, 4)
	if err != nil {
		return 0, nil, err
	}
	u := uint32(w)
	if u&sign32 != 0 {
		u &^= sign32
	} else {
		u = ^u
	}
	v = math.Float32frombits(u)
	if u == sign32 || v != v && u != nan32 {
		return 0, nil, malformed("float32 bits %#x", u)
	}
	return v, rest, nil
}

// DecodeBytes appends the value of a string or bytes component to dst.
func DecodeBytes(dst, key []byte) (v, rest []byte, err error) {
	for {
		i := bytes.IndexByte(key, zeroByte)
		if i < 0 || i+1 == len(key) {
			return nil, nil, malformed("string without end")
		}
		dst = append(dst, key[:i]...)
		mark := key[i+1]
		key = key[i+2:]
		switch mark {
		case zeroEnd:
			return dst, key, nil
		case zeroEscape:
			dst = append(dst, zeroByte)
		default:
			return nil, nil, malformed("escape 00 %02x in a string", mark)
		}
	}
}

// DecodeTime reads a time component; the result is in UTC.
func DecodeTime(key []byte) (v time.Time, rest []byte, err error) {
	sec, rest, err := DecodeInt(key, 8)
	if err != nil {
		return time.Time{}, nil, err
	}
	nsec, rest, err := DecodeUint(rest, 4)
	if err != nil {
		return time.Time{}, nil, err
	}
	if nsec >= MaxNsec {
		return time.Time{}, nil, malformed("%d nanoseconds", nsec)
	}
	return Instant{Sec: sec, Nsec: uint32(nsec)}.Time(), rest, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: index key: %s", fault.ErrCorrupt, fmt.Sprintf(format, args...))
}
