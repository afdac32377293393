package logstream

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// Change is a record that counts, as a Survey finds it.
type Change struct {
	CTS     uint64 // of the commit
	Row     rowid.ID
	Kind    Kind
	Address Address
	Origin  Origin // of a Relocation
}

// Survey is what was found by reading all segments of a log.
type Survey struct {
	Rounds  int64
	Frames  int64
	Records int64
	Bytes   int64 // of files
	// Damage are the places that hold nothing usable and should; nothing is known
	// to have been there when they lie behind what is proven to have been durable,
	// which Torn lists.
	Damage []*fault.File
	Torn   []*fault.File
	// Partial counts transactions of which some records are lost, and Undecided
	// those of which some were found and left out, because nothing tells whether
	// or when they were committed.
	Partial   int64
	Undecided int64

	runs []ctsRun
}

// surveyor reads one segment after the other.
type surveyor struct {
	*Archive
	Survey
	ctx    context.Context
	fn     func(Change)
	groups map[uint64]*foundGroup
	cuts   []cut         // frames of which some records are lost
	ends   []segmentRest // where the rounds of segments end
	inner  []segmentRest // what is wrong inside a round whose header is sound, and headers of segments
}

// foundGroup is a transaction of several parts.
type foundGroup struct {
	parts   uint32
	seen    uint32
	cts     uint64 // of the last part, 0 if that was not found
	changes []Change
}

// cut is a frame of which some records are lost.
type cut struct {
	stream  int
	at      Position
	header  frameHeader
	changes []Change
}

// segmentRest is the part of a segment behind its last round.
type segmentRest struct {
	t      *trail
	from   Position
	to     Position
	used   bool // it holds something
	reason flaw
}

// Survey reads all segments and calls fn, which may be nil, with every record
// that verifies and was committed: of whole frames, and of damaged ones if they
// are known to have been durable and it is certain which commit they belong to.
// Records come in no order. Bytes that cannot be read are damage too.
//
// Rounds that a recovery has dropped do not count. At the end of the log it is
// less strict than a recovery: transactions that verify in a round that is not
// complete do count. They were committed, though nobody was told so.
func (a *Archive) Survey(ctx context.Context, fn func(Change)) (*Survey, error) {
	s := &surveyor{Archive: a, ctx: ctx, fn: fn, groups: make(map[uint64]*foundGroup)}
	if fn == nil {
		s.fn = func(Change) {}
	}
	for _, t := range a.trails {
		for _, first := range t.firsts {
			if err := s.segment(t, first); err != nil {
				return nil, err
			}
		}
	}
	s.judgeEnds()
	s.judgeInner()
	s.settleCuts()
	s.settleGroups()
	s.joinRuns()
	return &s.Survey, nil
}

func (s *surveyor) damage(t *trail, from, to Position, reason string) {
	first := t.segmentOf(from)
	s.Damage = append(s.Damage, &fault.File{Kind: fault.ErrCorrupt, Path: t.path(first),
		Offset: int64(from - first), Length: int64(to - from), Reason: reason})
}

// segment walks through the rounds of a segment.
func (s *surveyor) segment(t *trail, first Position) error {
	w := &walk{surveyor: s, t: t, first: first, window: window{t: t}, lo: 1}
	w.effort = effortPerByte * int(s.codec.segmentBytes)
	w.end = min(t.next(first), s.bound(t.stream))
	h, usable := t.headers[first]
	if usable {
		w.life, w.lo = &h, h.startCTS
		w.end = min(w.end, s.lifeEnd(t.stream, h.number))
	}
	if limit, known := t.limit(first); known {
		w.end, w.known = min(w.end, limit), true
	}
	info, err := t.fs.Stat(t.path(first))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.Bytes += info.Size
	if over := info.Size - t.segmentBytes; over > 0 {
		s.Damage = append(s.Damage, &fault.File{Kind: fault.ErrCorrupt, Path: t.path(first),
			Offset: t.segmentBytes, Length: over, Reason: "longer than a segment; no data are concerned"})
	}
	if err := w.run(); err != nil {
		return err
	}
	if f := t.flaws[first]; !usable && (f != flawZero || w.rounds > 0) {
		w.flawed(first, t.dataStart(first), "segment header: "+f)
	}
	return nil
}

// judgeEnds tells the ends of segments that are damage from those that are the
// torn end of the log.
func (s *surveyor) judgeEnds() {
	for _, r := range s.ends {
		if proven := min(s.proven[r.t.stream], r.to); r.from < proven && !s.followerRemoved(&r) {
			s.damage(r.t, r.from, proven, "round: "+string(r.reason))
			continue
		}
		if r.used {
			s.torn(&r)
		}
	}
}

func (s *surveyor) torn(r *segmentRest) {
	first := r.t.segmentOf(r.from)
	s.Torn = append(s.Torn, &fault.File{Kind: fault.ErrCorrupt, Path: r.t.path(first),
		Offset: int64(r.from - first), Length: int64(r.to - r.from), Reason: "the torn end of the log: " + string(r.reason)})
}

// judgeInner tells damage from the last round, which was being written: of that,
// and of its segment, the header may be there and the rest not, or the other way
// round.
func (s *surveyor) judgeInner() {
	for _, r := range s.inner {
		if r.from < s.proven[r.t.stream] {
			s.damage(r.t, r.from, r.to, string(r.reason))
		} else {
			s.torn(&r)
		}
	}
}

// followerRemoved says whether nothing tells how far the data of a segment go,
// because the one behind it may have been removed.
func (s *surveyor) followerRemoved(r *segmentRest) bool {
	next := r.t.next(r.t.segmentOf(r.from))
	return next <= s.from[r.t.stream] && !slices.Contains(r.t.firsts, next)
}

// settleCuts delivers what is left of damaged frames that were durable.
func (s *surveyor) settleCuts() {
	for i := range s.cuts {
		c := &s.cuts[i]
		switch {
		case len(c.changes) == c.header.count: // only its header is damaged
			s.see(c.header.cts)
		case c.at >= s.proven[c.stream]:
			s.Undecided++
			continue
		default:
			s.Partial++
		}
		s.take(&c.header, c.changes)
	}
}

// take delivers the changes of a frame, or keeps them until the last part of
// their transaction is found.
func (s *surveyor) take(h *frameHeader, changes []Change) {
	s.Records += int64(len(changes))
	if h.parts == 1 {
		for _, c := range changes {
			s.fn(c)
		}
		return
	}
	g := s.groups[h.first]
	if g == nil {
		g = &foundGroup{parts: h.parts}
		s.groups[h.first] = g
	}
	g.seen++
	g.changes = append(g.changes, changes...)
	if h.part == h.parts {
		g.cts = h.cts
	}
}

// settleGroups delivers the transactions of several parts whose last one is
// there: it commits them.
func (s *surveyor) settleGroups() {
	for _, g := range s.groups {
		switch {
		case g.cts == 0:
			s.Undecided++
			continue
		case g.seen < g.parts:
			s.Partial++
		}
		for _, c := range g.changes {
			c.CTS = g.cts
			s.fn(c)
		}
	}
}

// Missing lists the segments between ScanOptions.From and where each stream is
// known to have gone on to, as a Survey has found out.
func (a *Archive) Missing() (list []*fault.File) {
	for s, t := range a.trails {
		for first := t.segmentOf(a.from[s]); first < a.proven[s]; first = t.next(first) {
			if !slices.Contains(t.firsts, first) {
				list = append(list, &fault.File{Kind: fault.ErrMissingFile, Path: t.path(first), Reason: "a segment of the log"})
			}
		}
	}
	return list
}

// noLimit stands for an upper bound of a CTS that nothing gives.
const noLimit = uint64(math.MaxUint64)
