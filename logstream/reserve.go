package logstream

import (
	"context"
	"fmt"
	"runtime"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// Validator is the last check before a commit. Validate runs under the commit
// latch, with the CTS that the transaction gets if it returns nil. It must not
// wait, and must not call the log.
type Validator interface {
	Validate(cts uint64) error
}

// Request asks for a place in the log.
type Request struct {
	Shard uint32 // any number; a shard always uses the same stream
	Bytes int    // FrameBytes of the records
	// Parts > 1 makes the frame part Part, from 1, of a group that takes effect
	// with its last part. First is the CTS of part 1; it is 0 in part 1 itself.
	First       uint64
	Part, Parts int
	Urgent      bool // frees space: may use the reserve
	Validate    Validator
}

func (r *Request) withDefaults() {
	if r.Parts == 0 {
		r.Part, r.Parts = 1, 1
	}
}

// Ticket is a place in the commit order and in the log. Whatever happens, its
// frame must be encoded and published, and soon: everybody behind it waits.
type Ticket struct {
	CTS, Round  uint64
	Stream      int
	Pos         Position
	Buf         []byte // the frame, valid until Publish
	first       uint64
	part, parts uint32
}

// verdict is what stands between a request and its place.
type verdict int

const (
	granted   verdict = iota
	notReady          // no incarnation yet, or no prepared space
	roundFull         // the open round must be flushed first
	ringFull          // too many commits are not published
	refused           // an error
)

// place is where a frame would go.
type place struct {
	base Position // of the round's part in the stream
	at   int      // of the frame in the part
	end  Position // of the part with the frame, padded
}

// Reserve gives a frame its CTS, its round and its position, in one step under
// the commit latch. It waits for space, and flushes when too much is not
// durable. With an error nothing was taken:
//
//	the error of Validate
//	fault.ErrNoSpace      no prepared space, and no more can be prepared
//	fault.ErrReadOnly     the log has failed; wraps the cause
//	fault.ErrRowTooLarge  the frame is larger than MaxFrame
//	fault.ErrClosed
//	the error of ctx
func (l *Log) Reserve(ctx context.Context, r Request) (Ticket, error) {
	r.withDefaults()
	if invariants.Enabled && (r.Bytes < frmHeader || r.Bytes%8 != 0) {
		invariants.Fail("reservation of %d bytes is not a FrameBytes", r.Bytes)
	}
	if r.Bytes > l.MaxFrame() {
		return Ticket{}, &fault.TooLarge{Kind: fault.ErrRowTooLarge, Size: r.Bytes, Limit: l.MaxFrame()}
	}
	var prepared error
	for {
		l.latch.Lock()
		t, v, err := l.tryReserve(&r)
		round, ask := l.open.number, uint64(0)
		if v == notReady && prepared == nil {
			ask = l.preparer.ask()
		}
		l.latch.Unlock()
		switch {
		case v == granted || v == refused:
			return t, err
		case v == notReady && prepared != nil:
			return Ticket{}, prepared
		case v == notReady:
			prepared, err = l.preparer.wait(ctx, ask)
		case v == roundFull:
			err = l.await(ctx, round)
		case v == ringFull:
			runtime.Gosched()
			err = ctx.Err()
		}
		if err != nil {
			return Ticket{}, l.reserveError(err)
		}
	}
}

// MaxFrame is the largest Request.Bytes: a round holds it alone.
func (l *Log) MaxFrame() int { return l.maxFrame() }

func (l *Log) reserveError(err error) error {
	if l.Failed() != nil {
		return l.readOnly()
	}
	return err
}

// tryReserve takes a place if nothing stands in the way. Caller holds the
// latch.
func (l *Log) tryReserve(r *Request) (Ticket, verdict, error) {
	if err := l.writable(); err != nil {
		return Ticket{}, refused, err
	}
	if !l.begun {
		return Ticket{}, notReady, nil
	}
	if !l.ring.hasRoom(l.nextCTS) {
		return Ticket{}, ringFull, nil
	}
	stream := int(r.Shard % uint32(len(l.streams)))
	p, v := l.findPlace(stream, r)
	if v != granted {
		return Ticket{}, v, nil
	}
	if p.end >= MaxPosition {
		return Ticket{}, refused, fmt.Errorf("%w: log positions of stream %d are used up", fault.ErrNoSpace, stream)
	}
	if r.Validate != nil {
		if err := r.Validate.Validate(l.nextCTS); err != nil {
			return Ticket{}, refused, err
		}
	}
	return l.take(stream, r, p), granted, nil
}

// writable is nil as long as a CTS can be given.
func (l *Log) writable() error {
	switch {
	case l.closed:
		return fault.ErrClosed
	case l.failure.Load() != nil:
		return l.readOnly()
	case l.nextCTS > MaxCTS || l.open.number > MaxCTS:
		return fmt.Errorf("%w: commit timestamps are used up", fault.ErrReadOnly)
	}
	return nil
}

// findPlace looks for room behind what the open round holds.
func (l *Log) findPlace(stream int, r *Request) (place, verdict) {
	part := &l.open.parts[stream]
	p := place{base: part.base, at: part.used}
	if part.used == 0 { // any frame fits into a round of its own
		p.at = roundHeaderBytes(l.geometry.streams)
		p.base = l.roundBase(stream, p.at+r.Bytes)
	}
	size := alignSector(p.at + r.Bytes)
	p.end = p.base + Position(size)
	if part.used > 0 && (size > len(part.buf) || p.end > l.next(l.segmentOf(p.base))) {
		return p, roundFull
	}
	return p, l.findSpace(stream, p.end, r.Urgent)
}

// roundBase is where a round with so many bytes begins: where the stream ends,
// or in the next segment if it does not fit.
func (l *Log) roundBase(stream, bytes int) Position {
	tail := l.tails[stream]
	next := l.next(l.segmentEndingAt(tail))
	if tail+Position(alignSector(bytes)) > next {
		return l.dataStart(next)
	}
	return tail
}

// take gives the place away.
func (l *Log) take(stream int, r *Request, p place) Ticket {
	o := l.open
	part := &o.parts[stream]
	if part.used == 0 {
		part.grow(alignSector(p.at+r.Bytes), l.bufferLimit())
	}
	part.base, part.used = p.base, p.at+r.Bytes
	o.participants |= 1 << uint(stream)
	cts := l.nextCTS
	l.nextCTS++
	if o.empty() {
		o.first, o.opened = cts, l.now()
		l.flusher.noteFirst()
		if l.oldest.Load() == 0 {
			l.oldest.Store(o.opened)
		}
	}
	o.last = cts
	l.flusher.noteBytes(part.used)
	t := Ticket{
		CTS: cts, Round: o.number, Stream: stream, Pos: p.base + Position(p.at),
		Buf:   part.buf[p.at : p.at+r.Bytes : p.at+r.Bytes],
		first: r.First, part: uint32(r.Part), parts: uint32(r.Parts),
	}
	if r.Part == 1 {
		t.first = cts
	}
	if r.Parts > 1 {
		l.noteGroup(&t)
	}
	return t
}

// Publish says that the frame is encoded and its versions carry the CTS. The
// commit becomes visible when all before it are published too.
func (l *Log) Publish(t Ticket) { l.ring.publish(t.CTS) }
