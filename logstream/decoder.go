package logstream

import (
	"context"
	"maps"
	"slices"
)

const (
	// firstWindow is what a decoder reads first. Behind a checkpoint there is often
	// little or nothing; the window doubles as long as there is more.
	firstWindow = 8 << 10
	// lastWindow is what it reads at once at most, but for longer rounds: batches
	// stay in the processor's cache, and few pages are touched for the first time.
	lastWindow = 128 << 10
)

// batchesAhead is how many batches a decoder may hold at once.
const batchesAhead = 3

// decoder reads the rounds of one stream in order, verifies all of their bytes
// and hands them on in batches. It stops at the first place that is not a
// round; it does not know whether that is the end or damage.
type decoder struct {
	*trail
	pos    Position // where it goes on, or has stopped
	window int      // bytes to read at once
	out    chan *batch
	free   chan *batch
	// The outcome, once out is closed.
	flaw flaw
	err  error
}

// batch is some rounds in one buffer.
type batch struct {
	buf    []byte
	rounds []round
	ends   []Position // backing of the rounds' headers
}

// bytes is how much of the stream a batch with rounds covers.
func (b *batch) bytes() int64 { return int64(b.rounds[len(b.rounds)-1].end() - b.rounds[0].pos) }

// round is a verified round in one stream.
type round struct {
	roundHeader
	pos    Position
	life   uint64
	frames []byte
}

func (r *round) framesAt() Position { return r.pos + Position(roundHeaderBytes(len(r.ends))) }

func (r *round) end() Position { return r.pos + Position(r.span()) }

// newDecoder gives the decoder a trail of its own, to which it may add.
func newDecoder(t *trail, from Position) *decoder {
	own := *t
	own.headers, own.flaws = maps.Clone(t.headers), maps.Clone(t.flaws)
	d := &decoder{trail: &own, pos: from, window: firstWindow,
		out: make(chan *batch, batchesAhead), free: make(chan *batch, batchesAhead)}
	for range batchesAhead {
		d.free <- &batch{}
	}
	return d
}

// begin decodes the first batch, and reports whether there may be more: then run has
// to follow.
func (d *decoder) begin() bool {
	if d.deliver(<-d.free) {
		return true
	}
	close(d.out)
	return false
}

// run decodes until the stream or ctx ends.
func (d *decoder) run(ctx context.Context) {
	defer close(d.out)
	for {
		select {
		case b := <-d.free:
			if !d.deliver(b) {
				return
			}
		case <-ctx.Done():
			d.err = ctx.Err()
			return
		}
	}
}

// deliver fills a batch and hands it on; false where the stream stops.
func (d *decoder) deliver(b *batch) bool {
	if d.err = d.fill(b); d.err != nil || len(b.rounds) == 0 {
		return false
	}
	d.out <- b // has room for all batches
	return true
}

// fill decodes the next rounds into b; none are there where the stream stops.
func (d *decoder) fill(b *batch) error {
	for {
		d.pos = d.follow(d.pos)
		if err := d.fillHere(b); err != nil || len(b.rounds) > 0 {
			return err
		}
		next := d.goOn(d.pos)
		_, known := d.headers[next]
		if err := d.loadHeader(next); err != nil { // it may be there by now
			return err
		}
		if _, found := d.headers[next]; known || !found {
			return nil
		}
	}
}

// fillHere decodes rounds of the segment that pos lies in.
func (d *decoder) fillHere(b *batch) error {
	b.rounds, b.ends = b.rounds[:0], b.ends[:0]
	h, limit, f := d.segment()
	if d.flaw = f; f != flawNone {
		return nil
	}
	room := int(limit - d.pos)
	for want := min(d.window, room); ; {
		if cap(b.buf) < want {
			b.buf = make([]byte, want)
		}
		b.buf = b.buf[:want]
		n, err := d.readAt(b.buf, d.pos)
		if err != nil {
			return err
		}
		need := d.parse(b, b.buf[:n], &h, limit)
		if len(b.rounds) > 0 {
			d.window = min(2*d.window, lastWindow)
		}
		if len(b.rounds) > 0 || need <= n || n < want || want == room {
			return nil
		}
		want = min(need, room)
	}
}

// segment returns the header of the segment at pos and where its rounds end at
// the latest.
func (d *decoder) segment() (segmentHeader, Position, flaw) {
	first := d.segmentOf(d.pos)
	h, ok := d.headers[first]
	switch {
	case !ok && d.flaws[first] != flawNone:
		return h, 0, d.flaws[first]
	case !ok || d.pos < d.dataStart(first):
		return h, 0, flawShort
	}
	limit, known := d.limit(first)
	switch {
	case !known:
		limit = d.next(first)
	case d.pos >= limit:
		return h, 0, flawPlace
	}
	return h, limit, flawNone
}

// parse takes the whole rounds at the start of data and moves pos behind them.
// It returns how many bytes the next one takes, as far as it can tell.
func (d *decoder) parse(b *batch, data []byte, h *segmentHeader, limit Position) (need int) {
	for d.pos < limit {
		r, need, f := d.round(b, data, h)
		if d.flaw = f; f != flawNone {
			return need
		}
		if r.end() > limit {
			d.flaw = flawPlace
			return 0
		}
		b.rounds = append(b.rounds, r)
		d.pos = r.end()
		data = data[min(r.span(), len(data)):]
	}
	return 0
}

// round verifies the round at the start of data, in the segment of h.
func (d *decoder) round(b *batch, data []byte, h *segmentHeader) (r round, need int, f flaw) {
	n := len(b.ends)
	b.ends = slices.Grow(b.ends, d.streams)[:n+d.streams]
	r.roundHeader, f = d.codec.readRoundHeader(data, d.stream, d.pos, b.ends[n:n])
	switch {
	case f == flawShort:
		return r, roundHeaderBytes(d.streams), f
	case f != flawNone:
		return r, 0, f
	case r.incarnation != h.number || r.salt != h.salt || r.number < h.startRound:
		return r, 0, flawLife
	}
	size := roundHeaderBytes(d.streams) + r.length
	if size > len(data) {
		return r, size, flawShort
	}
	r.pos, r.life = d.pos, life(r.incarnation, r.salt)
	r.frames = data[size-r.length : size]
	return r, 0, d.verifyFrames(&r)
}

func (d *decoder) verifyFrames(r *round) flaw {
	for at := 0; at < len(r.frames); {
		h, f := d.codec.verifyFrame(r.frames[at:], r.life, d.stream, r.framesAt()+Position(at))
		if f != flawNone {
			return f
		}
		if h.cts < r.first || h.cts > r.last {
			return flawField
		}
		at += h.length
	}
	return flawNone
}
