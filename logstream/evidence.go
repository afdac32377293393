package logstream

import (
	"errors"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// evidence collects what proves that positions were durable, and compares it
// with where the accepted rounds end. What is missing before a proven position
// is damage; what is missing behind is the torn end of the log.
//
// Only one round is written at a time, and a round is at most MaxRoundBytes
// long, so if the round at the end was ever followed by another one, that one
// begins within MaxRoundBytes behind the end, or the header of the next segment
// says that the data go on.
type evidence struct {
	trails  []*trail
	codec   *codec
	ends    []Position // of the accepted rounds, followed
	proven  []Position
	newest  uint64              // incarnation
	dropped []int64             // bytes behind the ends up to the last one that is not zero
	used    []map[Position]bool // segments behind the end that hold something
}

func newEvidence(trails []*trail, accepted []Position) *evidence {
	e := &evidence{trails: trails, codec: trails[0].codec, proven: make([]Position, len(trails)), dropped: make([]int64, len(trails))}
	for s, t := range trails {
		e.ends = append(e.ends, t.follow(accepted[s]))
		e.used = append(e.used, make(map[Position]bool))
	}
	return e
}

// claim takes positions that are said to be durable.
func (e *evidence) claim(ends []Position) {
	for s, end := range ends {
		e.proven[s] = max(e.proven[s], end)
	}
}

// claimHeaders takes what the segment headers say.
func (e *evidence) claimHeaders(newest *incarnation) {
	if newest != nil {
		e.claim(newest.seals)
		e.newest = newest.number
	}
	for s, t := range e.trails {
		for _, h := range t.headers {
			e.proven[s] = max(e.proven[s], h.prevEnd)
		}
	}
}

// search looks for round headers behind the ends.
func (e *evidence) search() error {
	buf := make([]byte, searchBytes)
	for s, t := range e.trails {
		end := e.ends[s]
		next := t.goOn(end)
		reach := end + MaxRoundBytes + sectorBytes
		if err := e.searchRange(t, end, min(next, reach), buf); err != nil {
			return err
		}
		if err := e.searchRange(t, next, max(t.dataStart(next), reach), buf); err != nil {
			return err
		}
		for first, f := range t.flaws {
			if first >= next && f != flawZero {
				e.used[s][first] = true
			}
		}
	}
	return nil
}

// searchBytes is how much of a file the search reads at once: it stays in the
// processor's cache, and few pages are touched for the first time.
const searchBytes = 64 << 10

// searchRange looks at [p, end), which is in one segment.
func (e *evidence) searchRange(t *trail, p, end Position, buf []byte) error {
	overlap := Position(alignSector(roundHeaderBytes(t.streams)))
	if t.isMissing(t.segmentOf(p)) {
		return nil
	}
	for p < end {
		b := buf[:min(Position(len(buf)), end-p)]
		n, err := t.readAt(b, p)
		if errors.Is(err, fault.ErrMissingFile) {
			return nil
		}
		if err != nil {
			return err
		}
		if b = b[:n]; !allZero(b) {
			e.searchIn(t, p, b)
		}
		if p+Position(n) >= end || n < len(buf) {
			return nil
		}
		p += Position(n) - overlap
	}
	return nil
}

func (e *evidence) searchIn(t *trail, p Position, b []byte) {
	for at := 0; at < len(b); at += sectorBytes {
		if allZero(b[at:min(at+sectorBytes, len(b))]) {
			continue
		}
		q := p + Position(at)
		e.used[t.stream][t.segmentOf(q)] = true
		e.dropped[t.stream] = int64(q + sectorBytes - e.ends[t.stream])
		h, f := e.codec.readRoundHeader(b[at:], t.stream, q, nil)
		if f == flawNone && !e.stale(t, &h, q) {
			e.claim(h.ends)
			e.newest = max(e.newest, h.incarnation)
		}
	}
}

// stale reports whether a round at p was left there by an incarnation before
// the one that owns the segment.
func (e *evidence) stale(t *trail, h *roundHeader, p Position) bool {
	owner, ok := t.headers[t.segmentOf(p)]
	return ok && h.incarnation < owner.number
}

// judge returns an error if something before a proven position is missing. It
// names a stream that stopped there, if there is one, rather than one whose
// rounds were not accepted because of another stream.
func (e *evidence) judge(stopped func(stream int) bool) error {
	worst := -1
	for s := range e.trails {
		if e.proven[s] > e.ends[s] && (worst < 0 || stopped(s) && !stopped(worst)) {
			worst = s
		}
	}
	if worst < 0 {
		return nil
	}
	return e.trails[worst].missing(e.ends[worst], e.proven[worst])
}

// missing describes the loss of [from, to), all of which was durable.
func (t *trail) missing(from, to Position) error {
	first := t.segmentEndingAt(from)
	if next := t.goOn(from); to > next {
		if _, ok := t.headers[next]; !ok {
			first = next
		}
	}
	f, flawed := t.flaws[first]
	_, ok := t.headers[first]
	switch {
	case !ok && !flawed:
		return &fault.File{Kind: fault.ErrMissingFile, Path: t.path(first),
			Reason: fmt.Sprintf("the log of stream %d is known to go on to %#x", t.stream, uint64(to))}
	case !ok:
		return fault.Corrupt(t.path(first), 0, int64(segmentHeaderBytes(t.streams)), "segment header: %s", f)
	}
	from = max(from, first)
	return fault.Corrupt(t.path(first), int64(from-first), int64(min(to, t.next(first))-from),
		"round at %#x: bytes up to %#x were durable and cannot be read", uint64(from), uint64(to))
}

// unsecured returns from where on in each stream the accepted bytes may exist
// in the page cache only. If that is exactly where a segment ends, the header
// of the next one, which is written together with its first round, counts too.
func (e *evidence) unsecured() []Position {
	list := make([]Position, len(e.proven))
	for s, t := range e.trails {
		p := e.proven[s]
		next := t.goOn(p)
		if h, ok := t.headers[next]; ok && h.prevEnd == p {
			p = next
		}
		list[s] = min(p, e.ends[s])
	}
	return list
}

// backBytes is how much roundBefore reads first: rounds of single commits are that
// short, and those of many are long.
const backBytes = 4 << 10

// roundBefore finds the round that ends at p, in the segment of p.
func (e *evidence) roundBefore(t *trail, p Position) (h roundHeader, found bool, err error) {
	start := t.dataStart(t.segmentEndingAt(p))
	if p > MaxRoundBytes {
		start = max(start, p-MaxRoundBytes)
	}
	var buf []byte
	header := Position(alignSector(roundHeaderBytes(t.streams)))
	step := Position(backBytes)
	for end := p; end > start; {
		from := max(start, end-min(end, step))
		if size := int(end - from + header); len(buf) < size {
			buf = make([]byte, size)
		}
		n, err := t.readAt(buf[:end-from+header], from)
		if err != nil {
			return h, false, err
		}
		for q := end - sectorBytes; q >= from; q -= sectorBytes {
			h, f := e.codec.readRoundHeader(buf[min(int(q-from), n):n], t.stream, q, nil)
			if f == flawNone && q+Position(h.span()) == p {
				return h, true, nil
			}
		}
		end = from
		step = min(4*step, searchBytes-header)
	}
	return h, false, nil
}

// follows checks, when no round was found behind the checkpoint, that the log
// reaches to it: in every stream a round of at most its number ends where the
// scan began, and its own round is one of them. Where a segment's header says
// that the data end, that is proof enough, also for the checkpoint's own round.
func (e *evidence) follows(o *ScanOptions) error {
	newest, seen, vouched := uint64(0), false, false
	for s, t := range e.trails {
		p := o.From[s]
		first := t.segmentEndingAt(p)
		owner, ok := t.headers[first]
		switch {
		case p != e.ends[s]: // by the next segment
			vouched = true
			continue
		case p == 0:
			continue
		case ok && p == t.dataStart(first): // by this one, unless the round is newer than what lies before
			vouched = vouched || !owner.firstLife || owner.startRound > o.AfterRound
			continue
		case !ok:
			return t.missing(p, p)
		}
		h, found, err := e.roundBefore(t, p)
		switch {
		case err != nil:
			return err
		case !found || h.number > o.AfterRound && o.AfterRound != 0:
			return fault.Corrupt(t.path(first), int64(p-first), 0, "no round of the log ends here, but the checkpoint of round %d says so", o.AfterRound)
		}
		newest, seen = max(newest, h.number), true
	}
	if seen && !vouched && newest < o.AfterRound {
		return e.behind(o, newest)
	}
	return nil
}

func (e *evidence) behind(o *ScanOptions, round uint64) error {
	return &fault.File{Kind: fault.ErrCorrupt, Path: o.Dir,
		Reason: fmt.Sprintf("the log ends with round %d, the checkpoint is of round %d", round, o.AfterRound)}
}
