package logstream

import (
	"context"

	"github.com/rekindledb/rekindle/internal/fault"
)

// ScanSegment calls fn for each record of one segment in the order in which they
// lie there, with the CTS of its frame. All of the segment is durable. Records
// that no commit counts are delivered too: those of groups that were given up,
// and those of rounds that a recovery has dropped. The record is valid during
// the call.
//
// A place that should hold data and does not verify ends the scan with
// fault.ErrCorrupt.
func (l *Log) ScanSegment(ctx context.Context, stream int, first Position, fn func(cts uint64, a Address, r Record) error) error {
	t := &trail{
		source: newSource(l.geometry, l.opt.FS, l.opt.Dir, stream),
		codec:  &l.codec, id: l.opt.DatabaseID,
		headers: make(map[Position]segmentHeader), flaws: make(map[Position]flaw),
	}
	defer t.close()
	if err := t.loadHeader(first); err != nil {
		return err
	}
	if _, ok := t.headers[first]; !ok {
		return t.unusable(first)
	}
	if err := t.loadHeader(t.next(first)); err != nil { // it says where the data of this one end
		return err
	}
	d := newDecoder(t, t.dataStart(first))
	b := &batch{}
	for {
		err := ctx.Err()
		if err == nil {
			err = d.fillHere(b)
		}
		if err != nil {
			return err
		}
		if len(b.rounds) == 0 {
			return d.endOfSegment(first)
		}
		for i := range b.rounds {
			if err := b.rounds[i].eachRecord(fn); err != nil {
				return err
			}
		}
	}
}

// unusable is the error about a segment without a header.
func (t *trail) unusable(first Position) error {
	f, found := t.flaws[first]
	if !found {
		return &fault.File{Kind: fault.ErrMissingFile, Path: t.path(first), Reason: "a segment of the log"}
	}
	return fault.Corrupt(t.path(first), 0, sectorBytes, "segment header: %s", f)
}

// endOfSegment judges the place where a segment's rounds end.
func (d *decoder) endOfSegment(first Position) error {
	if limit, known := d.limit(first); known && d.pos < limit {
		return fault.Corrupt(d.path(first), int64(d.pos-first), int64(limit-d.pos), "round: %s", d.flaw)
	}
	return nil
}

// eachRecord calls fn for the records of all frames of a round.
func (r *round) eachRecord(fn func(cts uint64, a Address, rec Record) error) error {
	for at := 0; at < len(r.frames); {
		h := readFrameHeader(r.frames[at:])
		err := eachRecord(r.frames[at:at+h.length], r.stream, r.framesAt()+Position(at), func(a Address, rec Record) error {
			return fn(h.cts, a, rec)
		})
		if err != nil {
			return err
		}
		at += h.length
	}
	return nil
}
