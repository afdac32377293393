package schema

import (
	"bytes"
	"encoding/binary"

	"github.com/rekindledb/rekindle/index/keyenc"
)

// key is how an index's keys are made from rows.
type key struct {
	parts    []part
	nullable bool // some column is
	word     bool // one part, of 8 bytes: the most frequent key has a short cut
}

// part is one component of a key. Rows with all columns are read by op, rows
// with fewer through cells.
type part struct {
	column int
	op     op
	at     int32  // opWord: offset in the row; opBytes: which variable column
	flip   uint64 // opWord: the component is the stored word XOR flip, big-endian
}

type op uint8

const (
	opCell  op = iota // anything
	opWord1           // integers and bool by their size in bytes, not nullable
	opWord2
	opWord4
	opWord8
	opBytes // string and bytes, not nullable
)

// wordOps has the opWord for each width.
var wordOps = [9]op{1: opWord1, 2: opWord2, 4: opWord4, 8: opWord8}

func (l *Layout) compileKey(x *Index) key {
	var k key
	for _, column := range x.Columns {
		k.parts = append(k.parts, l.compilePart(column))
		k.nullable = k.nullable || l.slots[column].nullBit != notNull
	}
	k.word = len(k.parts) == 1 && k.parts[0].op == opWord8
	return k
}

func (l *Layout) compilePart(column int) part {
	s := &l.slots[column]
	p := part{column: column}
	switch {
	case s.nullBit != notNull:
	case s.class == variable:
		p.op, p.at = opBytes, s.pos
	case s.class == signed || s.class == unsigned:
		p.op, p.at = wordOps[s.width], l.full().fixed+s.pos
		// XOR is all that these encodings do, so the component of 0 is the mask.
		p.flip, _, _ = keyenc.DecodeUint(s.appendComponent(nil, &cell{}), int(s.width))
	}
	return p
}

// AppendKey appends the key of the row in the index. Check holds for row.
func (l *Layout) AppendKey(dst []byte, index int, row []byte) []byte {
	k := &l.keys[index]
	full := columnCount(row) == len(l.slots)
	if full && k.word {
		return keyenc.AppendUint64(dst, binary.LittleEndian.Uint64(row[k.parts[0].at:])^k.parts[0].flip)
	}
	for i := range k.parts {
		if p := &k.parts[i]; full {
			dst = l.appendPart(dst, p, row)
		} else {
			c := l.cell(row, p.column)
			dst = l.slots[p.column].appendComponent(dst, &c)
		}
	}
	return dst
}

// appendPart appends a component from a row with all columns.
func (l *Layout) appendPart(dst []byte, p *part, row []byte) []byte {
	switch p.op {
	case opWord8:
		return keyenc.AppendUint64(dst, binary.LittleEndian.Uint64(row[p.at:])^p.flip)
	case opWord4:
		return keyenc.AppendUint(dst, load(row[p.at:], 4)^p.flip, 4)
	case opWord2:
		return keyenc.AppendUint(dst, load(row[p.at:], 2)^p.flip, 2)
	case opWord1:
		return keyenc.AppendUint(dst, load(row[p.at:], 1)^p.flip, 1)
	case opBytes:
		return keyenc.AppendBytes(dst, variableAt(row, l.full(), p.at))
	default:
		c := l.cell(row, p.column)
		return l.slots[p.column].appendComponent(dst, &c)
	}
}

// KeyMatches reports whether key is the key of the row in the index. It does
// not allocate. Check holds for row; key may be anything.
func (l *Layout) KeyMatches(index int, row, key []byte) bool {
	k := &l.keys[index]
	full := columnCount(row) == len(l.slots)
	if full && k.word {
		p := &k.parts[0]
		return len(key) == 8 && binary.BigEndian.Uint64(key) == binary.LittleEndian.Uint64(row[p.at:])^p.flip
	}
	ok := true
	for i := range k.parts {
		if p := &k.parts[i]; full {
			key, ok = l.cutPart(key, p, row)
		} else {
			key, ok = l.cutCell(key, p.column, row)
		}
		if !ok {
			return false
		}
	}
	return len(key) == 0
}

// cutPart cuts the component of a row with all columns off the front of key.
func (l *Layout) cutPart(key []byte, p *part, row []byte) (rest []byte, ok bool) {
	switch p.op {
	case opWord8:
		if len(key) < 8 || binary.BigEndian.Uint64(key)^p.flip != binary.LittleEndian.Uint64(row[p.at:]) {
			return nil, false
		}
		return key[8:], true
	case opWord4:
		if len(key) < 4 || binary.BigEndian.Uint32(key)^uint32(p.flip) != binary.LittleEndian.Uint32(row[p.at:]) {
			return nil, false
		}
		return key[4:], true
	case opBytes:
		return keyenc.MatchBytes(key, variableAt(row, l.full(), p.at))
	default:
		return l.cutCell(key, p.column, row)
	}
}

// cutCell is cutPart for every kind of row and column.
func (l *Layout) cutCell(key []byte, column int, row []byte) (rest []byte, ok bool) {
	var buf [1 + timeSize]byte
	s := &l.slots[column]
	c := l.cell(row, column)
	if s.class != variable || c.null {
		return bytes.CutPrefix(key, s.appendComponent(buf[:0], &c))
	}
	if s.nullBit != notNull {
		if key, ok = bytes.CutPrefix(key, keyenc.AppendPresent(buf[:0])); !ok {
			return nil, false
		}
	}
	return keyenc.MatchBytes(key, c.data)
}

// KeyHasNull reports whether a column of the row's key in the index is NULL;
// a unique index does not constrain such a row. Check holds for row.
func (l *Layout) KeyHasNull(index int, row []byte) bool {
	k := &l.keys[index]
	if !k.nullable {
		return false
	}
	for i := range k.parts {
		if c := l.cell(row, k.parts[i].column); c.null {
			return true
		}
	}
	return false
}
