package schema

import (
	"math"

	"github.com/rekindledb/rekindle/index/keyenc"
)

// cell is one column value on its way between payload, key, struct field and
// Go value. The zero cell is the zero value of every type.
type cell struct {
	word uint64 // fixed-width types: the stored bits in the low bytes, others undefined; instant: seconds
	data []byte // variable; not owned
	nsec uint32 // instant
	null bool
}

func (c *cell) instant() keyenc.Instant {
	return keyenc.Instant{Sec: int64(c.word), Nsec: c.nsec}
}

func (c *cell) setInstant(i keyenc.Instant) { c.word, c.nsec = uint64(i.Sec), i.Nsec }

// cell reads a column of a checked row.
func (l *Layout) cell(row []byte, column int) (c cell) {
	s := &l.slots[column]
	n := columnCount(row)
	if s.nullBit != notNull && (column >= n || isNull(row, s.nullBit)) {
		c.null = true
		return c
	}
	if column >= n {
		return c
	}
	switch sh := &l.shapes[n]; s.class {
	case variable:
		c.data = variableAt(row, *sh, s.pos)
	case instant:
		c.setInstant(loadInstant(row[sh.fixed+s.pos:]))
	default:
		c.word = load(row[sh.fixed+s.pos:], s.width)
	}
	return c
}

// putFixed writes a cell that is not NULL to its place in the fixed area.
func (s *slot) putFixed(b []byte, c *cell) {
	if s.class == instant {
		storeInstant(b, c.instant())
		return
	}
	store(b, s.width, c.word)
}

// appendComponent appends the cell as a component of a key.
func (s *slot) appendComponent(dst []byte, c *cell) []byte {
	if s.nullBit != notNull {
		if c.null {
			return keyenc.AppendNull(dst)
		}
		dst = keyenc.AppendPresent(dst)
	}
	switch s.class {
	case unsigned:
		return keyenc.AppendUint(dst, c.word, int(s.width))
	case signed:
		return keyenc.AppendInt(dst, int64(c.word), int(s.width))
	case float:
		if s.width == 4 {
			return keyenc.AppendFloat32(dst, math.Float32frombits(uint32(c.word)))
		}
		return keyenc.AppendFloat64(dst, math.Float64frombits(c.word))
	case instant:
		return keyenc.AppendInstant(dst, c.instant())
	default:
		return keyenc.AppendBytes(dst, c.data)
	}
}
