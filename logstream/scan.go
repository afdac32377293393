package logstream

import (
	"context"
	"fmt"
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// ScanOptions say what to scan. FS to SegmentBytes are as in Options.
type ScanOptions struct {
	FS           vfs.FS
	Dir          string
	DatabaseID   [16]byte
	Streams      int
	SegmentBytes int64

	// Where to begin: the Mark of a checkpoint, or nothing for the whole log.
	From       []Position // Mark.Replay
	Proven     []Position // Mark.Ends; may be left out, then less damage is found
	AfterCTS   uint64     // Mark.CTS: groups up to here are skipped
	AfterRound uint64     // Mark.Round

	// AllHeaders has the headers of segments before From read too, and refuses
	// segments that are from another copy of the log.
	AllHeaders bool

	// UntilRound ends the scan behind this round of a log that is being
	// written; the round must be durable. With 0 the scan goes to the end of a
	// log that nobody writes to, and decides where that is.
	UntilRound uint64
	// Progress is told how many bytes of how many are done; total is a bound.
	Progress func(done, total int64)

	total int64
}

// Tail is where a scan ended, and how.
type Tail struct {
	Start
	// Proven is how far each stream is durable for sure. What Scan accepted
	// behind it may exist in the page cache only: see Secure.
	Proven []Position
	// Dropped is how many bytes behind the end hold something that is not part
	// of the log: the torn end of a round, rounds that are not complete in all
	// streams. They stay where they are until their segment is removed.
	Dropped int64
	Reason  string // why the log ends where it does, if something was dropped
}

// Scan reads the log from o.From on and calls fn for each committed group, in
// CTS order. It verifies every byte that it delivers and writes nothing.
//
// The log ends before the first round that is not complete in all its
// participants. If anything proves that such a place was durable once, it is
// damage: then Scan fails, after having delivered what lies before.
//
//	fault.ErrCorrupt      with file, offset and extent
//	fault.ErrMissingFile  a segment is not there
//	fault.ErrForeignFile  a segment of another database, or of a copy of this one
//	fault.ErrFormat       a format version that is not known
//	the error of fn, of ctx, or of reading
//
// With UntilRound set only the fields NextCTS, NextRound and Ends of the Tail
// are filled.
func Scan(ctx context.Context, o ScanOptions, fn func(*Group) error) (Tail, error) {
	opt := Options{FS: o.FS, Streams: o.Streams, SegmentBytes: o.SegmentBytes}.withDefaults()
	if err := opt.validate(); err != nil {
		return Tail{}, err
	}
	if o.From == nil {
		o.From = make([]Position, opt.Streams)
	}
	if len(o.From) != opt.Streams || o.Proven != nil && len(o.Proven) != opt.Streams {
		return Tail{}, fmt.Errorf("%w: scan positions of %d streams in a log of %d", fault.ErrInvalidOptions, len(o.From), opt.Streams)
	}
	trails, err := openTrails(&o, opt.geometry())
	defer func() {
		for _, t := range trails {
			t.close()
		}
	}()
	if err != nil {
		return Tail{}, err
	}
	newest, err := incarnations(trails)
	if err != nil {
		return Tail{}, err
	}
	m := newMerger(&o, trails, fn)
	if err := m.run(ctx); err != nil {
		return Tail{}, err
	}
	if o.UntilRound != 0 {
		return m.endLive()
	}
	return m.end(newest)
}

// openTrails lists the files and reads the headers.
func openTrails(o *ScanOptions, g geometry) ([]*trail, error) {
	lists, err := listSegments(o.FS, o.Dir, g)
	if err != nil {
		return nil, err
	}
	c := newCodec(g, o.DatabaseID)
	var trails []*trail
	for s := range g.streams {
		t := &trail{
			source: newSource(g, o.FS, o.Dir, s),
			codec:  &c, id: o.DatabaseID, live: o.UntilRound != 0, listed: o.UntilRound == 0, firsts: lists[s],
			headers: make(map[Position]segmentHeader), flaws: make(map[Position]flaw),
		}
		trails = append(trails, t)
		from := o.From[s]
		if o.AllHeaders {
			from = 0
		}
		if err := t.loadHeaders(from); err != nil {
			return trails, err
		}
		if n := len(t.firsts); n > 0 {
			o.total += max(0, int64(t.next(t.firsts[n-1]))-int64(o.From[s]))
		}
	}
	return trails, nil
}

// end decides how a log ends that nobody writes to.
func (m *merger) end(newest *incarnation) (Tail, error) {
	e := newEvidence(m.trails, m.ends)
	if m.o.Proven != nil {
		e.claim(m.o.Proven)
	}
	e.claim(m.o.From)
	e.claim(m.starts)
	e.claimHeaders(newest)
	if err := e.search(); err != nil {
		return Tail{}, err
	}
	if err := e.judge(m.stopped); err != nil {
		return Tail{}, err
	}
	if err := m.compareMark(e); err != nil {
		return Tail{}, err
	}
	t := Tail{Start: m.start(e.ends), Proven: e.unsecured()}
	for _, n := range e.dropped {
		t.Dropped += n
	}
	t.Incarnation = e.newest
	if newest != nil {
		t.Salt = newest.salt
	}
	if t.Dropped > 0 {
		t.Reason = m.whyEnded()
	}
	for s, trail := range m.trails {
		t.addSegments(trail, e.ends[s], e.used[s])
	}
	return t, nil
}

// compareMark checks that the log is not behind the checkpoint.
func (m *merger) compareMark(e *evidence) error {
	switch {
	case m.number == 0:
		return e.follows(m.o)
	case m.number < m.o.AfterRound:
		return e.behind(m.o, m.number)
	}
	return nil
}

// endLive ends a scan of a log that is being written.
func (m *merger) endLive() (Tail, error) {
	t := Tail{Start: m.start(m.ends)}
	if m.finished() {
		return t, nil
	}
	reason := m.whyEnded()
	if reason == "" {
		reason = "the log ends before"
	}
	return Tail{}, &fault.File{Kind: fault.ErrCorrupt, Path: m.o.Dir,
		Reason: fmt.Sprintf("durable round %d cannot be read: %s", t.NextRound, reason)}
}

func (m *merger) start(ends []Position) Start {
	return Start{
		NextCTS:   max(m.cts, m.o.AfterCTS) + 1,
		NextRound: max(m.number, m.o.AfterRound) + 1,
		Ends:      slices.Clone(ends),
	}
}

// whyEnded says what is wrong with the round behind the last accepted one.
func (m *merger) whyEnded() string {
	if m.reason != "" {
		return m.reason
	}
	for s, d := range m.decoders {
		if d.flaw != flawNone && d.flaw != flawZero {
			return fmt.Sprintf("stream %d at %#x: %s", s, uint64(d.pos), d.flaw)
		}
	}
	return ""
}

// addSegments lists the files of a stream that ends at end.
func (t *Tail) addSegments(trail *trail, end Position, used map[Position]bool) {
	for _, first := range trail.firsts {
		if first < trail.goOn(end) {
			t.Segments = append(t.Segments, Segment{trail.stream, first, trail.next(first)})
		} else {
			t.Dead = append(t.Dead, DeadSegment{trail.stream, first, used[first]})
		}
	}
}
