package schema

import (
	"fmt"
	"slices"

	"github.com/rekindledb/rekindle/index/keyenc"
	"github.com/rekindledb/rekindle/internal/fault"
)

// AppendRow appends the payload of vals, one value per column. A value is nil
// for NULL, or a time.Time, or a bool, string, []byte, float or integer of any
// type based on these; it has to fit the column exactly. The error is a
// fault.Schema, or a fault.TooLarge; dst is then returned as it was.
func (l *Layout) AppendRow(dst []byte, vals []any) ([]byte, error) {
	if len(vals) != len(l.slots) {
		return dst, l.table.invalid("", "%d values for %d columns", len(vals), len(l.slots))
	}
	w := l.newRow(dst)
	for i, v := range vals {
		var c cell
		if err := l.setCell(&c, i, v); err != nil {
			return dst, err
		}
		if err := w.put(&l.slots[i], &c); err != nil {
			return dst, err
		}
	}
	return w.buf, nil
}

// rowWriter builds the payload of a row with all columns in the order of the
// columns. Areas before the data are there, zeroed, from the beginning.
type rowWriter struct {
	layout *Layout
	shape  shape
	buf    []byte
	start  int // of the payload in buf
}

func (l *Layout) newRow(dst []byte) rowWriter {
	w := rowWriter{layout: l, shape: l.full(), start: len(dst)}
	w.buf = slices.Grow(dst, int(w.shape.data))[:w.start+int(w.shape.data)]
	row := w.buf[w.start:]
	clear(row)
	store(row, countSize, uint64(len(l.slots)))
	return w
}

func (w *rowWriter) put(s *slot, c *cell) error {
	if c.null {
		setNull(w.buf[w.start:], s.nullBit)
	}
	if s.class == variable {
		return w.putVariable(s.pos, c.data)
	}
	if !c.null {
		s.putFixed(w.buf[w.start+int(w.shape.fixed+s.pos):], c)
	}
	return nil
}

// putVariable appends the bytes of variable column k; k goes up by one.
func (w *rowWriter) putVariable(k int32, data []byte) error {
	size := len(w.buf) - w.start
	if len(data) > MaxRowSize-size {
		return w.layout.rowTooLarge(size, len(data))
	}
	w.buf = append(w.buf, data...)
	putEnd(w.buf[w.start:], w.shape, k, int32(size+len(data))-w.shape.data)
	return nil
}

// rowTooLarge is the error for a row that data of that size would make too
// large. Size is what is known of the row by then.
func (l *Layout) rowTooLarge(size, data int) error {
	return &fault.TooLarge{Kind: fault.ErrRowTooLarge, Table: l.table.Name, Size: size + data, Limit: MaxRowSize}
}

// DecodeRow returns one value per column, of the Go type of the column, nil
// for NULL. Bytes are never nil; times are in UTC. Nothing refers to row. It
// is safe for any bytes; the error wraps fault.ErrCorrupt.
func (l *Layout) DecodeRow(row []byte) ([]any, error) {
	if err := l.Check(row); err != nil {
		return nil, err
	}
	vals := make([]any, len(l.slots))
	for i := range vals {
		if c := l.cell(row, i); !c.null {
			vals[i] = c.value(l.table.Columns[i].Type)
		}
	}
	return vals, nil
}

// AppendKeyValues appends the key of vals, one per column of the index, in
// the index. Values are as for AppendRow. With prefix, vals may be fewer than
// the columns: the result is a prefix of exactly the keys that begin with
// them. The error is a fault.Schema, or wraps fault.ErrInvalidQuery when the
// number of values is wrong; dst is then returned as it was.
func (l *Layout) AppendKeyValues(dst []byte, index int, vals []any, prefix bool) ([]byte, error) {
	columns := l.table.Indexes[index].Columns
	if len(vals) > len(columns) || len(vals) < len(columns) && !prefix {
		return dst, l.wrongCount(index, len(vals))
	}
	out := dst
	for i, v := range vals {
		var c cell
		if err := l.setCell(&c, columns[i], v); err != nil {
			return dst, err
		}
		out = l.slots[columns[i]].appendComponent(out, &c)
	}
	return out, nil
}

// AppendKeyStarting is AppendKeyValues with prefix, but the last value, of a
// string or bytes column, stands for all values that begin with it.
func (l *Layout) AppendKeyStarting(dst []byte, index int, vals []any) ([]byte, error) {
	columns := l.table.Indexes[index].Columns
	if len(vals) == 0 || len(vals) > len(columns) {
		return dst, l.wrongCount(index, len(vals))
	}
	last := columns[len(vals)-1]
	if c := l.table.Columns[last]; l.slots[last].class != variable || vals[len(vals)-1] == nil {
		return dst, l.table.invalid(c.Name, "no beginning of a value of type %v", c.Type)
	}
	out, err := l.AppendKeyValues(dst, index, vals, true)
	if err != nil {
		return dst, err
	}
	return out[:len(out)-keyenc.StringEnd], nil
}

func (l *Layout) wrongCount(index, n int) error {
	x := &l.table.Indexes[index]
	return fmt.Errorf("%w: table %s, index %s: %d values for %d columns", fault.ErrInvalidQuery, l.table.Name, x.Name, n, len(x.Columns))
}
