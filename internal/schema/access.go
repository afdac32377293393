package schema

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/rekindledb/rekindle/index/keyenc"
)

// This file has all the unsafe code of the package. It rests on three facts.
// A plan was compiled from the reflect.Type of the struct, so offset and form
// of each field are right. A type based on another has the same representation
// in memory, so a field of a named type is accessed as the type below it. And
// every pointer is written through a pointer-typed location, so the garbage
// collector sees it.

// form is how a value lies in Go memory.
type form uint8

const (
	formBool form = iota + 1
	form1         // integers and floats by their size in bytes
	form2
	form4
	form8
	formShortInt // int and uint of 32 bits, stored as 64
	formShortUint
	formString
	formBytes
	formTime
)

// formInt and formUint are the forms of int and uint on this platform.
const (
	formInt  = formShortInt - (formShortInt-form8)*(strconv.IntSize/64)
	formUint = formShortUint - (formShortUint-form8)*(strconv.IntSize/64)
)

// nullKind is how a field says NULL.
type nullKind uint8

const (
	never     nullKind = iota
	byPointer          // *T
	byValid            // Null[T]; V is at its start
)

// access is how to reach the value of a field.
type access struct {
	form  form
	nulls nullKind
	valid uintptr // byValid: offset of Valid
}

// AppendRow appends the payload of the struct at src: the same bytes as
// Layout.AppendRow of the fields' values. Nil bytes are stored as empty, not
// as NULL. The error is a fault.TooLarge; dst is then returned as it was.
func (m *Mapping) AppendRow(dst []byte, src unsafe.Pointer) ([]byte, error) {
	size, err := m.rowSize(src)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	row := dst[start:]
	sh := m.full
	clear(row[:sh.data])
	binary.LittleEndian.PutUint16(row, uint16(len(m.steps)))
	end := sh.data
	for i := range m.steps {
		s := &m.steps[i]
		p := unsafe.Add(src, s.offset)
		if s.nulls != never {
			if p = s.locate(p); p == nil {
				setNull(row, s.nullBit)
			}
		}
		if s.class == variable {
			end += int32(copy(row[end:], s.form.bytes(p)))
			putEnd(row, sh, s.pos, end-sh.data)
		} else if p != nil {
			s.encode(row[sh.fixed+s.pos:], p)
		}
	}
	// The size was a guess if the struct is changed meanwhile; what is stored
	// has to be a row even then.
	return dst[:start+int(end)], nil
}

// rowSize returns the size of the payload of the struct at src.
func (m *Mapping) rowSize(src unsafe.Pointer) (int, error) {
	size := int(m.full.data)
	for _, column := range m.variables {
		s := &m.steps[column]
		p := unsafe.Add(src, s.offset)
		if s.nulls != never {
			p = s.locate(p)
		}
		n := len(s.form.bytes(p))
		if n > MaxRowSize-size {
			return 0, m.layout.rowTooLarge(size, n)
		}
		size += n
	}
	return size, nil
}

// DecodeRow sets every mapped field of the struct at dst from row. Pointers,
// strings and bytes get memory of their own; bytes that are not NULL are not
// nil; times are in UTC. Fields of columns that the row lacks become NULL or
// zero. It is safe for any bytes: the error wraps fault.ErrCorrupt, or
// fault.ErrSchema when a number does not fit an int of this platform, and the
// struct is then partly set.
func (m *Mapping) DecodeRow(row []byte, dst unsafe.Pointer) error { return m.decode(row, dst, false) }

// DecodeShared is DecodeRow without copies: strings and bytes that no pointer
// leads to are parts of row and live as long as row is left alone.
func (m *Mapping) DecodeShared(row []byte, dst unsafe.Pointer) error { return m.decode(row, dst, true) }

func (m *Mapping) decode(row []byte, dst unsafe.Pointer, shared bool) error {
	n, sh, err := m.layout.open(row)
	if err != nil {
		return err
	}
	data := row[sh.data:]
	start := uint32(0)
	for i := range m.steps {
		s := &m.steps[i]
		p := unsafe.Add(dst, s.offset)
		if i >= n {
			s.reset(p)
			continue
		}
		var value []byte
		if s.class == variable {
			end := endAt(row, sh, s.pos)
			if end < start || uint64(end) > uint64(len(data)) {
				return m.layout.corrupt("column %d: bytes %d to %d of %d", i, start, end, len(data))
			}
			value, start = data[start:end], end
		} else {
			value = row[sh.fixed+s.pos:]
		}
		if s.nulls != never {
			if isNull(row, s.nullBit) {
				s.reset(p)
				continue
			}
			p = s.makeValid(p)
		} else if shared && s.class == variable {
			s.form.share(p, value)
			continue
		}
		if !s.decode(p, value) {
			return m.layout.table.invalid(m.layout.table.Columns[i].Name, "value does not fit an int of this platform")
		}
	}
	return nil
}

// AppendKey appends the key of the struct at src in the index: the same bytes
// as Layout.AppendKey of its payload.
func (m *Mapping) AppendKey(dst []byte, index int, src unsafe.Pointer) []byte {
	k := &m.layout.keys[index]
	for i := range k.parts {
		part := &k.parts[i]
		s := &m.steps[part.column]
		switch {
		case part.op == opWord8 && s.form == form8:
			dst = keyenc.AppendUint64(dst, *(*uint64)(unsafe.Add(src, s.offset))^part.flip)
		case part.op == opWord4:
			dst = keyenc.AppendUint(dst, uint64(*(*uint32)(unsafe.Add(src, s.offset)))^part.flip, 4)
		default:
			c := s.cell(src)
			dst = s.appendComponent(dst, &c)
		}
	}
	return dst
}

// KeyHasNull is Layout.KeyHasNull for the struct at src.
func (m *Mapping) KeyHasNull(index int, src unsafe.Pointer) bool {
	k := &m.layout.keys[index]
	if !k.nullable {
		return false
	}
	for i := range k.parts {
		if c := m.steps[k.parts[i].column].cell(src); c.null {
			return true
		}
	}
	return false
}

// cell reads the field of the struct at src.
func (s *step) cell(src unsafe.Pointer) (c cell) {
	p := unsafe.Add(src, s.offset)
	if s.nulls != never {
		if p = s.locate(p); p == nil {
			c.null = true
			return c
		}
	}
	switch s.class {
	case variable:
		c.data = s.form.bytes(p)
	case instant:
		c.setInstant(keyenc.InstantOf(*(*time.Time)(p)))
	default:
		c.word = s.form.word(p)
	}
	return c
}

// encode writes the fixed-width value at p to the start of b.
func (s *step) encode(b []byte, p unsafe.Pointer) {
	if s.form == formTime {
		storeInstant(b, keyenc.InstantOf(*(*time.Time)(p)))
		return
	}
	store(b, s.width, s.form.word(p))
}

// decode sets the value at p from the bytes of its column, which may go on
// after a fixed-width value. It returns false when the value does not fit.
func (s *step) decode(p unsafe.Pointer, b []byte) bool {
	switch s.form {
	case formString:
		*(*string)(p) = string(b)
	case formBytes:
		*(*[]byte)(p) = copyBytes(b)
	case formTime:
		*(*time.Time)(p) = loadInstant(b).Time()
	default:
		return s.form.setWord(p, load(b, s.width))
	}
	return true
}

// share makes the string or bytes at p a part of b.
func (f form) share(p unsafe.Pointer, b []byte) {
	if f == formString {
		*(*string)(p) = unsafe.String(unsafe.SliceData(b), len(b))
		return
	}
	*(*[]byte)(p) = b[:len(b):len(b)]
}

// locate returns where the value of the nullable field at p is, nil for NULL.
func (a *access) locate(p unsafe.Pointer) unsafe.Pointer {
	if a.nulls == byPointer {
		return *(*unsafe.Pointer)(p)
	}
	if *(*bool)(unsafe.Add(p, a.valid)) {
		return p
	}
	return nil
}

// makeValid makes room for a value in the nullable field at p and returns
// where the value goes.
func (a *access) makeValid(p unsafe.Pointer) unsafe.Pointer {
	if a.nulls == byPointer {
		target := a.form.allocate()
		*(*unsafe.Pointer)(p) = target
		return target
	}
	*(*bool)(unsafe.Add(p, a.valid)) = true
	return p
}

// reset makes the field at p NULL, or the zero value if it is not nullable.
func (a *access) reset(p unsafe.Pointer) {
	if a.nulls == byPointer {
		*(*unsafe.Pointer)(p) = nil
		return
	}
	if a.nulls == byValid {
		*(*bool)(unsafe.Add(p, a.valid)) = false
	}
	switch a.form {
	case formString:
		*(*string)(p) = ""
	case formBytes:
		*(*[]byte)(p) = nil
	case formTime:
		*(*time.Time)(p) = time.Time{}
	default:
		a.form.setWord(p, 0)
	}
}

func (f form) allocate() unsafe.Pointer {
	switch f {
	case formBool, form1:
		return unsafe.Pointer(new(uint8))
	case form2:
		return unsafe.Pointer(new(uint16))
	case form4, formShortInt, formShortUint:
		return unsafe.Pointer(new(uint32))
	case form8:
		return unsafe.Pointer(new(uint64))
	case formString:
		return unsafe.Pointer(new(string))
	case formBytes:
		return unsafe.Pointer(new([]byte))
	default:
		return unsafe.Pointer(new(time.Time))
	}
}

// bytes returns the string or bytes at p without copying; none for NULL.
func (f form) bytes(p unsafe.Pointer) []byte {
	switch {
	case p == nil:
		return nil
	case f == formString:
		return stringBytes(*(*string)(p))
	default:
		return *(*[]byte)(p)
	}
}

// word returns the stored bits of the number or bool at p.
func (f form) word(p unsafe.Pointer) uint64 {
	switch f {
	case formBool, form1:
		return uint64(*(*uint8)(p))
	case form2:
		return uint64(*(*uint16)(p))
	case form4, formShortUint:
		return uint64(*(*uint32)(p))
	case formShortInt:
		return uint64(*(*int32)(p))
	default:
		return *(*uint64)(p)
	}
}

// setWord is the reverse of word. It returns false when v does not fit.
func (f form) setWord(p unsafe.Pointer, v uint64) bool {
	switch f {
	case formBool:
		*(*bool)(p) = v != 0 // a bool with another byte is not one
	case form1:
		*(*uint8)(p) = uint8(v)
	case form2:
		*(*uint16)(p) = uint16(v)
	case form4:
		*(*uint32)(p) = uint32(v)
	case formShortInt:
		*(*int32)(p) = int32(v)
		return int64(int32(v)) == int64(v)
	case formShortUint:
		*(*uint32)(p) = uint32(v)
		return v <= math.MaxUint32
	default:
		*(*uint64)(p) = v
	}
	return true
}

// stringBytes returns the bytes of s, which must not be written to.
func stringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
