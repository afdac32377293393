package schema

import "github.com/rekindledb/rekindle/index/keyenc"

// Check verifies a payload from an untrusted source: nil means that it is one
// that AppendRow writes, for this table or for one with fewer columns that
// this table appends to. The error wraps fault.ErrCorrupt.
func (l *Layout) Check(row []byte) error {
	n, sh, err := l.open(row)
	if err != nil {
		return err
	}
	if n < l.minColumns {
		return l.corrupt("%d columns, the primary key needs %d", n, l.minColumns)
	}
	if len(row) > MaxRowSize {
		return l.corrupt("%d bytes, limit %d", len(row), MaxRowSize)
	}
	if err := l.checkBitmap(row, n, sh); err != nil {
		return err
	}
	return l.checkColumns(row, n, sh)
}

// checkBitmap verifies that no bit without a column is set.
func (l *Layout) checkBitmap(row []byte, n int, sh shape) error {
	var nullables int16
	for i := range l.slots[:n] {
		if l.slots[i].nullBit != notNull {
			nullables++
		}
	}
	for bit := nullables; countSize+int32(bit>>3) < sh.fixed; bit++ {
		if isNull(row, bit) {
			return l.corrupt("NULL bit %d of %d", bit, nullables)
		}
	}
	return nil
}

func (l *Layout) checkColumns(row []byte, n int, sh shape) error {
	size := uint32(len(row) - int(sh.data))
	last := uint32(0)
	for i := range l.slots[:n] {
		s := &l.slots[i]
		null := s.nullBit != notNull && isNull(row, s.nullBit)
		if s.class != variable {
			if reason := checkFixed(row[sh.fixed+s.pos:][:s.width], s, l.table.Columns[i].Type, null); reason != "" {
				return l.corrupt("column %s: %s", l.table.Columns[i].Name, reason)
			}
			continue
		}
		end := endAt(row, sh, s.pos)
		if end < last || end > size || null && end != last {
			return l.corrupt("column %s: bytes %d to %d of %d, NULL %v", l.table.Columns[i].Name, last, end, size, null)
		}
		last = end
	}
	if last != size {
		return l.corrupt("%d bytes after the last column", size-last)
	}
	return nil
}

// checkFixed returns what is wrong with the bytes of a fixed-width column.
func checkFixed(b []byte, s *slot, t Type, null bool) string {
	switch {
	case null && anySet(b):
		return "NULL with a value"
	case t == Bool && b[0] > 1:
		return "bool above 1"
	case s.class == instant && loadInstant(b).Nsec >= keyenc.MaxNsec:
		return "a second has fewer nanoseconds"
	}
	return ""
}

func anySet(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return true
		}
	}
	return false
}
