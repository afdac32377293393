package logstream

import (
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// ReadAt reads and verifies the record at a with one read, two if it is larger
// than MaxClassBytes. The record points into the returned buffer, which is buf
// or a larger one. Bytes that do not verify give fault.ErrCorrupt, a segment
// that was removed fault.ErrMissingFile.
//
// Only durable records can be read: an address may be put where readers find
// it when Durable has passed its CTS, not before.
func (l *Log) ReadAt(a Address, buf []byte) (Record, []byte, error) {
	if err := l.readable(a); err != nil {
		return Record{}, buf, err
	}
	size := a.SizeBound()
	if size == 0 {
		head, grown, err := l.read(a, recHeader, buf)
		if err != nil {
			return Record{}, grown, err
		}
		if size, buf, err = l.spanOf(a, head), grown, nil; size == 0 {
			return Record{}, buf, l.damaged(a, recHeader, flawSize)
		}
	}
	b, buf, err := l.read(a, size, buf)
	if err != nil {
		return Record{}, buf, err
	}
	rec, err := l.verified(a, b)
	return rec, buf, err
}

// spanOf is the size of a record as its header says, 0 if it cannot be.
func (l *Log) spanOf(a Address, head []byte) int {
	span, f := recordSpan(head)
	if f != flawNone {
		return 0
	}
	return span
}

// read fetches up to n bytes of the segment at a.
func (l *Log) read(a Address, n int, buf []byte) (b, grown []byte, err error) {
	buf = slices.Grow(buf[:0], n)[:n]
	got, err := l.streams[a.Stream()].ReadAt(buf, a.Position())
	return buf[:got], buf, err
}

func (l *Log) verified(a Address, b []byte) (Record, error) {
	if _, _, f := l.verifyRecord(b, a.Stream(), a.Position()); f != flawNone {
		return Record{}, l.damaged(a, len(b), f)
	}
	return recordAt(b), nil
}

// readable checks that the address can be one of a durable record.
func (l *Log) readable(a Address) error {
	if a.IsValid() && a.Stream() < len(l.streams) && uint64(a.Position()) < l.durableEnds[a.Stream()].Load() {
		return nil
	}
	if invariants.Enabled && a.IsValid() && a.Stream() < len(l.streams) && l.reserved(a) {
		invariants.Fail("%v is read before it is durable", a)
	}
	return &fault.File{Kind: fault.ErrCorrupt, Path: l.opt.Dir, Reason: a.String() + " is not in the log"}
}

func (l *Log) reserved(a Address) bool {
	l.latch.Lock()
	defer l.latch.Unlock()
	return uint64(a.Position()) >= l.durableEnds[a.Stream()].Load() && a.Position() < l.reservedEnd(a.Stream())
}

// Place returns the file that a valid address points into, and where.
func (l *Log) Place(a Address) (path string, offset int64) {
	first := l.segmentOf(a.Position())
	return segmentPath(l.opt.Dir, a.Stream(), first), int64(a.Position() - first)
}

func (l *Log) damaged(a Address, n int, f flaw) error {
	path, offset := l.Place(a)
	return fault.Corrupt(path, offset, int64(n), "record at %v: %s", a, f)
}

const (
	minWindow = 64 << 10
	maxWindow = 1 << 20
)

// Reader reads many records, best in ascending order of their addresses: it
// reads ahead as long as that pays. It is for one goroutine.
type Reader struct {
	log    *Log
	stream int
	base   Position // of the window
	window []byte
	ahead  int // bytes that the next load reads
}

// NewReader returns a reader of durable records.
func NewReader(l *Log) *Reader { return &Reader{log: l, ahead: minWindow} }

// Read returns the record at a, which is valid until the next call. Errors as
// from ReadAt.
func (r *Reader) Read(a Address) (Record, error) {
	if err := r.log.readable(a); err != nil {
		return Record{}, err
	}
	size := a.SizeBound()
	if size == 0 {
		head, err := r.bytes(a, recHeader)
		if err != nil {
			return Record{}, err
		}
		if size = r.log.spanOf(a, head); size == 0 {
			return Record{}, r.log.damaged(a, recHeader, flawSize)
		}
	}
	b, err := r.bytes(a, size)
	if err != nil {
		return Record{}, err
	}
	return r.log.verified(a, b)
}

// bytes returns n bytes at a, or what there is before the segment's end.
func (r *Reader) bytes(a Address, n int) ([]byte, error) {
	p := a.Position()
	n = int(min(uint64(n), uint64(r.log.next(r.log.segmentOf(p))-p)))
	if a.Stream() != r.stream || p < r.base || p+Position(n) > r.base+Position(len(r.window)) {
		if err := r.load(a, n); err != nil {
			return nil, err
		}
	}
	at := int(p - r.base)
	return r.window[at:min(at+n, len(r.window))], nil
}

// load moves the window to a. It doubles while addresses follow each other
// closely and starts small again after a jump.
func (r *Reader) load(a Address, n int) error {
	p := a.Position()
	end := r.base + Position(len(r.window))
	if a.Stream() == r.stream && p >= r.base && p <= end+Position(r.ahead) {
		r.ahead = min(2*r.ahead, maxWindow)
	} else {
		r.ahead = minWindow
	}
	b, buf, err := r.log.read(a, max(n, r.ahead), r.window)
	r.stream, r.base, r.window = a.Stream(), p, b
	if err != nil {
		r.window = buf[:0]
	}
	return err
}
