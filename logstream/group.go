package logstream

import (
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Group is a committed transaction with all its parts. It is valid during the
// call that delivers it.
type Group struct {
	CTS     uint64 // of its last part, which is the commit
	Round   uint64 // of its last part
	records []frameRef
	scan    *assembler
}

// frameRef is the place of a frame. body is nil when the frame must be read
// again: the first parts of a group wait there, not in memory.
type frameRef struct {
	stream int
	pos    Position
	length int
	life   uint64
	body   []byte
}

// Records calls fn for each record in the order in which the transaction wrote
// them. The record is valid during the call. It may be called again.
func (g *Group) Records(fn func(Address, Record) error) error {
	for i := range g.records {
		f := &g.records[i]
		body := f.body
		if body == nil {
			var err error
			if body, err = g.scan.reread(f); err != nil {
				return err
			}
		}
		if err := eachRecord(body, f.stream, f.pos, fn); err != nil {
			return err
		}
	}
	return nil
}

// eachRecord walks a verified frame.
func eachRecord(frame []byte, stream int, p Position, fn func(Address, Record) error) error {
	for at := frmHeader; at < len(frame); {
		r := recordAt(frame[at:])
		span := RecordBytes(len(r.Keys), len(r.Payload))
		if err := fn(MakeAddress(stream, p+Position(at), span), r); err != nil {
			return err
		}
		at += span
	}
	return nil
}

// assembler puts the parts of groups together and delivers groups.
type assembler struct {
	trails []*trail
	after  uint64 // groups up to this CTS are skipped
	fn     func(*Group) error
	group  Group // reused
	single [1]frameRef
	open   map[uint64]*pendingGroup // by CTS of part 1
	buf    []byte
}

type pendingGroup struct {
	parts uint32
	refs  []frameRef
}

func newAssembler(trails []*trail, after uint64, fn func(*Group) error) *assembler {
	a := &assembler{trails: trails, after: after, fn: fn, open: make(map[uint64]*pendingGroup)}
	a.group.scan = a
	return a
}

// frame takes the next frame in CTS order.
func (a *assembler) frame(r *round, h *frameHeader, body []byte, p Position) error {
	ref := frameRef{stream: r.stream, pos: p, length: h.length, life: r.life}
	if h.parts > 1 {
		return a.part(r, h, ref)
	}
	if h.cts <= a.after {
		return nil
	}
	ref.body = body
	a.single[0] = ref
	return a.deliver(h.cts, r.number, a.single[:])
}

// part adds a part to its group. Parts without a first one belong to a group
// that was given up, or that is complete at or before the start of the scan.
func (a *assembler) part(r *round, h *frameHeader, ref frameRef) error {
	g := a.open[h.first]
	switch {
	case h.part == 1:
		g = &pendingGroup{parts: h.parts}
		a.open[h.first] = g
	case g == nil && h.part == h.parts && h.cts > a.after:
		return a.broken(&ref, "last part of a group without the first")
	case g == nil:
		return nil
	case h.parts != g.parts || int(h.part) != len(g.refs)+1:
		return a.broken(&ref, fmt.Sprintf("part %d of %d behind part %d of %d", h.part, h.parts, len(g.refs), g.parts))
	}
	g.refs = append(g.refs, ref)
	if h.part < h.parts {
		return nil
	}
	delete(a.open, h.first)
	if h.cts <= a.after {
		return nil
	}
	return a.deliver(h.cts, r.number, g.refs)
}

func (a *assembler) deliver(cts, round uint64, refs []frameRef) error {
	a.group.CTS, a.group.Round, a.group.records = cts, round, refs
	return a.fn(&a.group)
}

// forget drops all open groups: a group does not outlive its incarnation.
func (a *assembler) forget() { clear(a.open) }

func (a *assembler) broken(f *frameRef, reason string) error {
	t := a.trails[f.stream]
	first := t.segmentOf(f.pos)
	return fault.Corrupt(t.path(first), int64(f.pos-first), int64(f.length), "%s", reason)
}

// reread fetches a frame that was verified before.
func (a *assembler) reread(f *frameRef) ([]byte, error) {
	if cap(a.buf) < f.length {
		a.buf = make([]byte, f.length)
	}
	t := a.trails[f.stream]
	n, err := t.readAt(a.buf[:f.length], f.pos)
	if err != nil {
		return nil, err
	}
	if _, flaw := t.codec.verifyFrame(a.buf[:n], f.life, f.stream, f.pos); flaw != flawNone {
		return nil, a.broken(f, "the frame has changed since it was scanned: "+string(flaw))
	}
	return a.buf[:n], nil
}
