package logstream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// walk reads one segment from start to end and goes on behind what is damaged.
type walk struct {
	*surveyor
	t      *trail
	window window
	first  Position
	end    Position       // rounds end here at the latest
	known  bool           // exactly here
	life   *segmentHeader // nil if the header cannot be read
	rounds int
	lo     uint64 // the least CTS that the next frame can have
	round  round  // the last one
	effort int    // bytes that guesses may still sum up: bytes made to look like records cannot make it take for ever
}

// effortPerByte bounds what guessing costs, per byte of the segment.
const effortPerByte = 64

// run walks. Only the end of the context is an error.
func (w *walk) run() error {
	p := w.t.dataStart(w.first)
	for p < w.end {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		r, f := w.roundAt(p)
		if f == flawNone {
			w.take(&r)
			p = r.end()
			continue
		}
		next, used := w.search(p + sectorBytes)
		used = used || !allZero(w.window.bytes(p, int(min(sectorBytes, w.end-p))))
		switch {
		case next < w.end:
			w.lost(p, next, f)
		case w.known:
			w.lost(p, w.end, f)
		default:
			w.ends = append(w.ends, segmentRest{w.t, p, w.end, used, f})
			if used {
				w.mend(w.framesBehind(p), w.end, noLimit)
			}
		}
		p = next
	}
	w.unreadable()
	return nil
}

// lost notes that [p, end) holds no sound round, and looks for what is usable in
// it.
func (w *walk) lost(p, end Position, f flaw) {
	w.damage(w.t, p, end, "round: "+string(f))
	w.mend(w.framesBehind(p), end, noLimit)
}

// framesBehind is where the frames of a round at p begin.
func (w *walk) framesBehind(p Position) Position {
	return p + Position(roundHeaderBytes(w.t.streams))
}

// unreadable notes what could not be read.
func (w *walk) unreadable() {
	for _, e := range w.window.failures {
		w.damage(w.t, e.at, e.at+sectorBytes, e.err.Error())
	}
}

// roundAt decodes the round at p.
func (w *walk) roundAt(p Position) (r round, f flaw) {
	n := roundHeaderBytes(w.t.streams)
	head := w.window.bytes(p, n)
	r.roundHeader, f = w.codec.readRoundHeader(head, w.t.stream, p, nil)
	switch {
	case f != flawNone:
		return r, f
	case w.life != nil && (r.incarnation != w.life.number || r.salt != w.life.salt), w.foreignLife(&r.roundHeader):
		return r, flawLife
	case p >= w.lifeEnd(w.t.stream, r.incarnation) || p+Position(r.span()) > w.end:
		return r, flawPlace
	}
	r.pos, r.life = p, life(r.incarnation, r.salt)
	return r, flawNone
}

// foreignLife says whether a round comes from another copy of the database.
func (w *walk) foreignLife(h *roundHeader) bool {
	for i := range w.lives {
		if w.lives[i].number == h.incarnation {
			return w.lives[i].salt != h.salt
		}
	}
	return false
}

// search returns where the next round begins at or behind p, w.end if there is
// none, and whether anything but zeros lies before.
func (w *walk) search(p Position) (next Position, used bool) {
	for ; p < w.end; p += sectorBytes {
		b := w.window.bytes(p, sectorBytes)
		if len(b) == 0 {
			break
		}
		if allZero(b) {
			continue
		}
		if _, f := w.roundAt(p); f == flawNone {
			return p, used
		}
		used = true
	}
	return w.end, used
}

// take notes the round at r.pos, whose header is sound, and delivers its frames.
func (w *walk) take(r *round) {
	w.rounds++
	w.Rounds++
	w.claim(r.ends)
	w.lo, w.round = max(w.lo, r.first), *r
	w.mend(r.framesAt(), r.framesAt()+Position(r.length), r.last)
	w.lo = r.last + 1
	if padding := w.window.bytes(r.framesAt()+Position(r.length), r.span()-roundHeaderBytes(w.t.streams)-r.length); !allZero(padding) {
		w.flawed(r.framesAt()+Position(r.length), r.end(), "not zero between two rounds; no data are concerned")
	}
}

// flawed notes that [p, end), inside a round or the segment's header, is not as it
// should be.
func (w *walk) flawed(p, end Position, reason flaw) {
	w.inner = append(w.inner, segmentRest{w.t, p, end, true, reason})
}

// lifeAt is the part of the seeds of frames that stands for their incarnation.
func (w *walk) lifeAt() (seed uint64, known bool) {
	switch {
	case w.rounds > 0:
		return w.round.life, true
	case w.life != nil:
		return life(w.life.number, w.life.salt), true
	}
	return 0, false
}

// mend delivers the frames in [p, end), the last CTS of which is hi at most, and
// what can be saved of those that are damaged.
func (w *walk) mend(p, end Position, hi uint64) {
	for p < end {
		h, f := w.frameAt(p, end)
		if f == flawNone && h.cts <= hi {
			w.whole(p, &h)
			p += Position(h.length)
			continue
		}
		next, h := w.searchFrame(p+8, end, hi)
		if next < end {
			w.gap(p, next, h.cts-1)
		} else {
			w.gap(p, end, hi)
		}
		p = next
	}
}

// frameAt verifies the frame at p.
func (w *walk) frameAt(p, end Position) (frameHeader, flaw) {
	seed, known := w.lifeAt()
	if !known {
		return frameHeader{}, flawLife
	}
	head := w.window.bytes(p, int(min(frmHeader, end-p)))
	if len(head) < frmHeader {
		return frameHeader{}, flawShort
	}
	h := readFrameHeader(head)
	if f := h.sound(int(min(end-p, MaxRoundBytes))); f != flawNone {
		return h, f
	}
	if h.cts < w.lo || !w.worth(h.length) {
		return h, flawField
	}
	return w.codec.verifyFrame(w.window.bytes(p, h.length), seed, w.t.stream, p)
}

// searchFrame looks for a frame at or behind p.
func (w *walk) searchFrame(p, end Position, hi uint64) (Position, frameHeader) {
	for ; p+frmHeader <= end; p += 8 {
		for p%sectorBytes == 0 && p+sectorBytes <= end && allZero(w.window.bytes(p, sectorBytes)) {
			p += sectorBytes
		}
		if h, f := w.frameAt(p, end); f == flawNone && h.cts <= hi {
			return p, h
		}
	}
	return end, frameHeader{}
}

// whole delivers a frame that is sound.
func (w *walk) whole(p Position, h *frameHeader) {
	w.Frames++
	w.lo = h.cts + 1
	w.effort += h.length // it was no guess
	w.see(h.cts)
	var changes []Change
	// The callback returns no error.
	_ = eachRecord(w.window.bytes(p, h.length), w.t.stream, p, func(a Address, r Record) error {
		changes = append(changes, newChange(h.cts, a, &r))
		return nil
	})
	w.surveyor.take(h, changes)
}

func newChange(cts uint64, a Address, r *Record) Change {
	return Change{CTS: cts, Row: r.Row, Kind: r.Kind, Address: a, Origin: r.Origin()}
}

// gap looks for a damaged frame at p that ends before next; its CTS is hi at
// most. What is left of it counts only if its header is beyond doubt.
func (w *walk) gap(p, next Position, hi uint64) {
	b := w.window.bytes(p, int(min(next-p, MaxRoundBytes)))
	if allZero(b) {
		return
	}
	if next <= w.round.end() { // else it was reported with its round
		w.flawed(p, next, "frame: checksum mismatch")
	}
	if len(b) < frmHeader {
		return
	}
	h, ok := w.header(b, p, hi)
	if !ok {
		if w.anyRecord(b, p) {
			w.Undecided++
		}
		return
	}
	w.lo = h.cts + 1
	w.cuts = append(w.cuts, cut{w.t.stream, p, h, w.records(b[:h.length], p, h.cts)})
}

// header tells the header of a damaged frame from what can be read of it, in one
// of three ways: its checksum is right with those of the records; it is right for
// what the header should be; the header is the only one that fits here.
func (w *walk) header(b []byte, p Position, hi uint64) (frameHeader, bool) {
	seed, known := w.lifeAt()
	if !known {
		return frameHeader{}, false
	}
	stored := binary.LittleEndian.Uint64(b)
	h := readFrameHeader(b)
	sound := h.sound(len(b)) == flawNone && h.cts >= w.lo && h.cts <= hi
	if sound && h.count == w.countSpans(b[frmHeader:h.length]) &&
		w.codec.frameSum(b, storedSums(b[frmHeader:h.length]), seed, w.t.stream, p) == stored {
		return h, true
	}
	if should, ok := w.guess(b, seed, p, hi); ok {
		return should, true
	}
	fits := h.cts == w.lo && (w.t.streams == 1 || h.cts == hi)
	return h, sound && fits && h.parts == 1
}

// guesses is how many commit timestamps are tried for one damaged header.
const guesses = 64

// guess makes the header that a frame should have which fills b and is a whole
// transaction, and compares it with the checksum that is there.
func (w *walk) guess(b []byte, seed uint64, p Position, hi uint64) (frameHeader, bool) {
	h := frameHeader{length: len(b), count: w.countSpans(b[frmHeader:]), part: 1, parts: 1}
	if h.count == 0 {
		return h, false
	}
	sums := storedSums(b[frmHeader:])
	head := make([]byte, frmHeader)
	for cts := w.lo; cts <= hi && cts < w.lo+guesses; cts++ {
		h.cts, h.first = cts, cts
		h.put(head)
		if w.codec.frameSum(head, sums, seed, w.t.stream, p) == binary.LittleEndian.Uint64(b) {
			return h, true
		}
	}
	return h, false
}

// worth says whether n more bytes may be summed up for a guess.
func (w *walk) worth(n int) bool {
	w.effort -= n
	return w.effort > 0
}

// countSpans counts records by the sizes that they give, 0 if these do not fill b.
func (w *walk) countSpans(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		span, f := recordSpan(b)
		if f != flawNone || span > len(b) {
			return 0
		}
		b = b[span:]
	}
	return n
}

// storedSums chains the checksums that records give.
func storedSums(b []byte) (sums uint64) {
	for len(b) > 0 {
		span, f := recordSpan(b)
		if f != flawNone || span > len(b) {
			return sums
		}
		sums = chain(sums, binary.LittleEndian.Uint32(b[recChecksum:]))
		b = b[span:]
	}
	return sums
}

// records returns the records of a frame that verify.
func (w *walk) records(frame []byte, p Position, cts uint64) (changes []Change) {
	for at := frmHeader; at+recHeader <= len(frame); {
		span, ok := w.recordAt(frame[at:], p+Position(at))
		if !ok {
			at += 8
			continue
		}
		r := recordAt(frame[at:])
		changes = append(changes, newChange(cts, MakeAddress(w.t.stream, p+Position(at), span), &r))
		at += span
	}
	return changes
}

// recordAt says whether a record lies at the start of b. What cannot be one is
// seen before anything is summed up.
func (w *walk) recordAt(b []byte, p Position) (span int, ok bool) {
	span, f := recordSpan(b)
	if f != flawNone || b[recFlags] != 0 || !Kind(b[recKind]).known() || span > len(b) || !w.worth(span) {
		return 0, false
	}
	_, _, f = w.codec.verifyRecord(b, w.t.stream, p)
	return span, f == flawNone
}

// anyRecord says whether b has a record anywhere.
func (w *walk) anyRecord(b []byte, p Position) bool {
	for at := 0; at+recHeader <= len(b); at += 8 {
		if _, ok := w.recordAt(b[at:], p+Position(at)); ok {
			return true
		}
	}
	return false
}

// window reads a segment ahead. Sectors that cannot be read are zeros.
type window struct {
	t        *trail
	base     Position
	data     []byte
	failures []readFailure
}

type readFailure struct {
	at  Position
	err error
}

// bytes returns n bytes at p, fewer where the file ends. They are valid until the
// next call.
func (w *window) bytes(p Position, n int) []byte {
	if p < w.base || p+Position(n) > w.base+Position(len(w.data)) {
		w.load(p, max(n, minWindow))
	}
	at := int(p - w.base)
	return w.data[min(at, len(w.data)):min(at+n, len(w.data))]
}

func (w *window) load(p Position, n int) {
	w.base = p &^ (sectorBytes - 1)
	n = int(min(Position(alignSector(n)+sectorBytes), w.t.next(w.t.segmentOf(p))-w.base))
	if cap(w.data) < n {
		w.data = make([]byte, n)
	}
	w.data = w.data[:n]
	got, err := w.t.readAt(w.data, w.base)
	if err == nil {
		w.data = w.data[:got]
		return
	}
	w.loadSectors(err)
}

// loadSectors reads sector by sector, after the whole could not be read.
func (w *window) loadSectors(err error) {
	if errors.Is(err, fault.ErrMissingFile) {
		w.data = w.data[:0]
		return
	}
	for at := 0; at < len(w.data); at += sectorBytes {
		sector := w.data[at:min(at+sectorBytes, len(w.data))]
		n, err := w.t.readAt(sector, w.base+Position(at))
		if err != nil {
			clear(sector)
			w.fail(w.base+Position(at), err)
			continue
		}
		if n < len(sector) {
			w.data = w.data[:at+n]
			return
		}
	}
}

func (w *window) fail(at Position, err error) {
	for _, f := range w.failures {
		if f.at == at {
			return
		}
	}
	w.failures = append(w.failures, readFailure{at, fmt.Errorf("cannot be read: %w", err)})
}
