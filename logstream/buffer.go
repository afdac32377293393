package logstream

import "math/bits"

// firstBuffer is the size of a round's buffer in each stream to begin with.
// It doubles, up to half of Options.MaxUnflushed, as long as rounds fill it.
const firstBuffer = 512 << 10

// openRound is a round in memory: the one that takes frames, or the one that
// is being flushed. Two of them take turns. It is guarded by the latch while
// it is open and belongs to the leader afterwards.
type openRound struct {
	number       uint64
	first, last  uint64 // CTS; last is 0 while the round is empty
	participants uint64
	opened       int64      // Log.now of the first frame
	starts       []Position // where the streams ended before the round
	parts        []roundPart
	room         *waitingRoom // nil until somebody waits
}

// roundPart is the part of a round in one stream. buf holds the bytes from
// base on; used is 0 until a frame is there.
type roundPart struct {
	base Position
	used int
	buf  []byte
}

// waitingRoom is where committers wait for their round.
type waitingRoom struct {
	done chan struct{} // closed when the round is durable, or never will be
	lead chan struct{} // a token: nobody flushes, one of you should
}

func newOpenRound(streams int) *openRound {
	return &openRound{starts: make([]Position, streams), parts: make([]roundPart, streams)}
}

// reset makes the round open, empty, behind the given ends.
func (r *openRound) reset(number uint64, ends []Position, limit int) {
	r.number, r.first, r.last, r.participants, r.opened, r.room = number, 0, 0, 0, 0, nil
	copy(r.starts, ends)
	for i := range r.parts {
		r.parts[i].reset(limit)
	}
}

// reset keeps the buffer, or takes a larger one if the last round came close
// to its end, or the usual one after a round with an oversized frame.
func (p *roundPart) reset(limit int) {
	switch {
	case len(p.buf) > limit:
		p.buf = nil
	case p.used > len(p.buf)/2 && len(p.buf) < limit:
		p.buf = make([]byte, min(2*len(p.buf), limit))
	}
	p.base, p.used = 0, 0
}

// grow makes room for n bytes in a part that holds nothing yet.
func (p *roundPart) grow(n, limit int) {
	if n <= len(p.buf) {
		return
	}
	p.buf = make([]byte, max(n, min(firstBuffer, limit)))
}

func (r *openRound) empty() bool { return r.last == 0 }

// bytes is what the round holds in its fullest stream.
func (r *openRound) bytes() int {
	n := 0
	for i := range r.parts {
		n = max(n, r.parts[i].used)
	}
	return n
}

// wait returns the room in which to wait for the round.
func (r *openRound) wait() *waitingRoom {
	if r.room == nil {
		r.room = &waitingRoom{done: make(chan struct{}), lead: make(chan struct{}, 1)}
	}
	return r.room
}

// seal completes the header and the padding of one part and returns its bytes.
func (r *openRound) seal(c *codec, life *incarnation, stream int) []byte {
	p := &r.parts[stream]
	h := roundHeader{
		incarnation:  life.number,
		salt:         life.salt,
		number:       r.number,
		participants: r.participants,
		first:        r.first,
		last:         r.last,
		stream:       stream,
		length:       p.used - roundHeaderBytes(c.streams),
		ends:         r.starts,
	}
	h.put(c, p.buf, p.base)
	padded := alignSector(p.used)
	clear(p.buf[p.used:padded])
	return p.buf[:padded]
}

// streamSet iterates over the streams of a bitmap.
func streamSet(set uint64) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for ; set != 0; set &= set - 1 {
			if !yield(bits.TrailingZeros64(set)) {
				return
			}
		}
	}
}
