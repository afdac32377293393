package keyenc

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// Marker bytes of nullable components.
const (
	markNull    = 0x00
	markPresent = 0x01
)

// The two bytes that start with 0x00 inside a string component. Both second
// bytes keep the order: the end sorts before everything that can follow in a
// longer string, the escape sorts a real zero byte before all other bytes.
const (
	zeroByte   = 0x00
	zeroEscape = 0xFF
	zeroEnd    = 0x01
)

// StringEnd is the size of the end of a string component in bytes. A component
// without it is what AppendBytesPrefix appends.
const StringEnd = 2

const (
	sign32 = 1 << 31
	sign64 = 1 << 63

	// The one NaN of each width: quiet, no payload, positive, so that it sorts
	// after +Inf.
	nan32 = 0x7FC00000
	nan64 = 0x7FF8000000000000
)

// AppendNull appends the component of a NULL in a nullable column.
func AppendNull(dst []byte) []byte { return append(dst, markNull) }

// AppendPresent appends the marker that comes before a value in a nullable
// column.
func AppendPresent(dst []byte) []byte { return append(dst, markPresent) }

// AppendBool appends a bool component; false sorts before true.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendInt64 appends an int64 component.
func AppendInt64(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^sign64)
}

// AppendUint64 appends a uint64 component.
func AppendUint64(dst []byte, v uint64) []byte {
	return binary.BigEndian.AppendUint64(dst, v)
}

// AppendInt appends a signed component of width 1, 2, 4 or 8 bytes. Only the
// low width bytes of v count.
func AppendInt(dst []byte, v int64, width int) []byte {
	return AppendUint(dst, uint64(v)^(1<<(8*width-1)), width)
}

// AppendUint appends an unsigned component of width 1, 2, 4 or 8 bytes. Only
// the low width bytes of v count.
func AppendUint(dst []byte, v uint64, width int) []byte {
	switch width {
	case 1:
		return append(dst, byte(v))
	case 2:
		return binary.BigEndian.AppendUint16(dst, uint16(v))
	case 4:
		return binary.BigEndian.AppendUint32(dst, uint32(v))
	default:
		return binary.BigEndian.AppendUint64(dst, v)
	}
}

// AppendFloat64 appends a float64 component.
func AppendFloat64(dst []byte, v float64) []byte {
	b := math.Float64bits(v)
	switch {
	case v == 0:
		b = 0
	case v != v:
		b = nan64
	}
	return binary.BigEndian.AppendUint64(dst, b^(uint64(int64(b)>>63)|sign64))
}

// AppendFloat32 appends a float32 component.
func AppendFloat32(dst []byte, v float32) []byte {
	b := math.Float32bits(v)
	switch {
	case v == 0:
		b = 0
	case v != v:
		b = nan32
	}
	return binary.BigEndian.AppendUint32(dst, b^(uint32(int32(b)>>31)|sign32))
}

// AppendBytes appends a bytes component. Nil and empty are the same value.
func AppendBytes(dst, v []byte) []byte {
	return append(AppendBytesPrefix(dst, v), zeroByte, zeroEnd)
}

// AppendString appends a string component, the same bytes as AppendBytes.
func AppendString(dst []byte, v string) []byte {
	return AppendBytes(dst, unsafe.Slice(unsafe.StringData(v), len(v)))
}

// AppendBytesPrefix appends v without the end of the component: a prefix of
// the components of exactly those strings that begin with v.
func AppendBytesPrefix(dst, v []byte) []byte {
	for {
		i := bytes.IndexByte(v, zeroByte)
		if i < 0 {
			return append(dst, v...)
		}
		dst = append(dst, v[:i+1]...)
		dst = append(dst, zeroEscape)
		v = v[i+1:]
	}
}

// AppendTime appends a time component. Location and monotonic clock reading
// do not count.
func AppendTime(dst []byte, t time.Time) []byte {
	return AppendInstant(dst, InstantOf(t))
}

// AppendInstant appends a time component.
func AppendInstant(dst []byte, i Instant) []byte {
	dst = AppendInt64(dst, i.Sec)
	return binary.BigEndian.AppendUint32(dst, i.Nsec)
}
