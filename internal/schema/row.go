package schema

import (
	"encoding/binary"
	"fmt"

	"github.com/rekindledb/rekindle/index/keyenc"
	"github.com/rekindledb/rekindle/internal/fault"
)

// Sizes of the parts of a payload.
const (
	countSize = 2 // number of columns
	endSize   = 4 // one end offset
)

// A bit number fits int16, and a fixed-area offset int32.
const _ = uint(1<<15 - 1 - MaxColumns)

// notNull is the null bit of a column that is not nullable.
const notNull = -1

// slot is the place of a column in payloads. It is the same in rows of every
// number of columns.
type slot struct {
	class   class
	width   uint8
	nullBit int16 // bit of the null bitmap, or notNull
	pos     int32 // offset in the fixed area; for variable: which end offset
}

// shape is where the areas of a payload with a certain number of columns
// begin, in bytes from its start. The null bitmap begins at countSize.
type shape struct {
	fixed int32
	ends  int32
	data  int32
}

// arrange places the columns; shapes[n] is for rows with n columns.
func arrange(columns []Column) (slots []slot, shapes []shape) {
	slots = make([]slot, len(columns))
	shapes = make([]shape, len(columns)+1)
	var nullables int16
	var fixed, variables int32
	shapes[0] = shape{fixed: countSize, ends: countSize, data: countSize}
	for i, c := range columns {
		info := types[c.Type]
		s := slot{class: info.class, width: info.width, nullBit: notNull, pos: fixed}
		if c.Nullable {
			s.nullBit = nullables
			nullables++
		}
		if info.class == variable {
			s.pos = variables
			variables++
		}
		fixed += int32(info.width)
		slots[i] = s
		start := countSize + (int32(nullables)+7)/8
		shapes[i+1] = shape{fixed: start, ends: start + fixed, data: start + fixed + endSize*variables}
	}
	return slots, shapes
}

// columnCount returns the number of columns that row was written with.
func columnCount(row []byte) int { return int(binary.LittleEndian.Uint16(row)) }

// open returns column count and shape of a row of unknown origin, verified as
// far as the offsets of the shape.
func (l *Layout) open(row []byte) (int, shape, error) {
	if len(row) < countSize {
		return 0, shape{}, l.corrupt("%d bytes", len(row))
	}
	n := columnCount(row)
	if n >= len(l.shapes) {
		return 0, shape{}, l.corrupt("%d columns, the table has %d", n, len(l.slots))
	}
	sh := l.shapes[n]
	if len(row) < int(sh.data) {
		return 0, shape{}, l.corrupt("%d bytes, %d columns take %d", len(row), n, sh.data)
	}
	return n, sh, nil
}

// isNull reports whether the bit is set. bit is not notNull.
func isNull(row []byte, bit int16) bool { return row[countSize+bit>>3]&(1<<(bit&7)) != 0 }

func setNull(row []byte, bit int16) { row[countSize+bit>>3] |= 1 << (bit & 7) }

// load returns the little-endian word of the width at the start of b.
func load(b []byte, width uint8) uint64 {
	switch width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// store writes the low width bytes of v to the start of b.
func store(b []byte, width uint8, v uint64) {
	switch width {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// loadInstant and storeInstant are load and store of a time.
func loadInstant(b []byte) keyenc.Instant {
	_ = b[timeSize-1]
	return keyenc.Instant{Sec: int64(binary.LittleEndian.Uint64(b)), Nsec: binary.LittleEndian.Uint32(b[8:])}
}

func storeInstant(b []byte, i keyenc.Instant) {
	_ = b[timeSize-1]
	binary.LittleEndian.PutUint64(b, uint64(i.Sec))
	binary.LittleEndian.PutUint32(b[8:], i.Nsec)
}

// endAt returns end offset k of a row with the shape.
func endAt(row []byte, sh shape, k int32) uint32 {
	return binary.LittleEndian.Uint32(row[sh.ends+endSize*k:])
}

func putEnd(row []byte, sh shape, k, end int32) {
	binary.LittleEndian.PutUint32(row[sh.ends+endSize*k:], uint32(end))
}

// variableAt returns the bytes of variable column k of a checked row.
func variableAt(row []byte, sh shape, k int32) []byte {
	start := uint32(0)
	if k > 0 {
		start = endAt(row, sh, k-1)
	}
	return row[sh.data:][start:endAt(row, sh, k)]
}

func (l *Layout) corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: row of table %s: %s", fault.ErrCorrupt, l.table.Name, fmt.Sprintf(format, args...))
}
