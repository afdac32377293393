package logstream

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Start is where a log goes on: the zero value in a new database, otherwise
// what Scan found.
type Start struct {
	NextCTS     uint64
	NextRound   uint64
	Incarnation uint64     // the newest one seen, 0 if none
	Salt        uint64     // of that incarnation
	Ends        []Position // where the data of each stream end
	Segments    []Segment
	Dead        []DeadSegment
}

func (s Start) withDefaults(streams int) Start {
	s.NextCTS = max(s.NextCTS, 1)
	s.NextRound = max(s.NextRound, 1)
	if s.Ends == nil {
		s.Ends = make([]Position, streams)
	}
	return s
}

// Log orders commits, gives them their places and makes them durable.
//
//	To commit:   Reserve, Encode, Publish, Acknowledge
//	To read:     ReadAt, or a Reader for many addresses in ascending order
//	To checkpoint: Mark, Scan up to Mark.Round, RemoveSegment
//
// All methods may be called concurrently.
type Log struct {
	codec
	opt     Options
	streams []Stream
	birth   time.Time // zero of now
	start   Start
	current incarnation
	life    uint64 // seed of current

	ring         visibleRing
	durableCTS   atomic.Uint64
	durableRound atomic.Uint64
	durableEnds  []atomic.Uint64 // Position by stream
	oldest       atomic.Int64    // Log.now of the oldest commit that is not durable, 0 if none
	failure      atomic.Pointer[error]
	counters     counters

	// latch is the commit latch. It is never held across I/O.
	latch    sync.Mutex
	begun    bool
	closed   bool
	seized   bool       // Close has taken the lead for good
	leading  bool       // somebody flushes, or is about to close the open round
	crowded  bool       // the last round that was closed had more than one commit
	nextCTS  uint64     // to be given
	tails    []Position // where the next round begins, but for the end of a segment
	wanted   []Position // space that somebody has waited for
	open     *openRound
	flushing *openRound // under the leader, or the spare one
	groups   map[uint64]*openGroup
	marked   uint64 // round of the last Mark

	flusher  flusher
	preparer preparer
}

// Open prepares to append behind start. It changes no file: that is left to
// the first Reserve.
func Open(o Options, start Start) (*Log, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	start = start.withDefaults(o.Streams)
	if len(start.Ends) != o.Streams {
		return nil, fmt.Errorf("%w: %d log streams, the log has %d", fault.ErrInvalidOptions, o.Streams, len(start.Ends))
	}
	l := &Log{codec: newCodec(o.geometry(), o.DatabaseID), opt: o, birth: time.Now(), start: start}
	for i := range o.Streams {
		src := newSource(l.geometry, o.FS, o.Dir, i)
		l.streams = append(l.streams, newSegmentStream(src, o.DatabaseID, &l.start))
	}
	l.startRounds()
	l.flusher.start(l)
	l.preparer.start(l)
	return l, nil
}

// startLife names the incarnation, once: that begins with the first commit, and a
// log that is only read draws no salt.
func (l *Log) startLife() error {
	if l.current.number != 0 { // an attempt to begin it has failed
		return nil
	}
	var salt [8]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return err
	}
	l.current = incarnation{
		number:     l.start.Incarnation + 1,
		salt:       binary.LittleEndian.Uint64(salt[:]),
		prevSalt:   l.start.Salt,
		startRound: l.start.NextRound,
		startCTS:   l.start.NextCTS,
		seals:      l.start.Ends,
	}
	l.life = life(l.current.number, l.current.salt)
	return nil
}

func (l *Log) startRounds() {
	n := len(l.streams)
	l.ring.mark.Store(l.start.NextCTS - 1)
	l.durableCTS.Store(l.start.NextCTS - 1)
	l.durableRound.Store(l.start.NextRound - 1)
	l.durableEnds = make([]atomic.Uint64, n)
	for i, end := range l.start.Ends {
		l.durableEnds[i].Store(uint64(end))
	}
	l.nextCTS = l.start.NextCTS
	l.tails = slices.Clone(l.start.Ends)
	l.wanted = make([]Position, n)
	l.open, l.flushing = newOpenRound(n), newOpenRound(n)
	l.open.reset(l.start.NextRound, l.tails, 0)
	l.groups = make(map[uint64]*openGroup)
	l.marked = l.start.NextRound - 1
}

// now is nanoseconds since Open; it is never 0.
func (l *Log) now() int64 { return int64(time.Since(l.birth)) + 1 }

// Visible is the newest CTS up to which all commits are published.
func (l *Log) Visible() uint64 { return l.ring.mark.Load() }

// Durable is the newest CTS up to which all commits survive a crash. It never
// exceeds Visible.
func (l *Log) Durable() uint64 { return l.durableCTS.Load() }

// WaitVisible returns when cts is visible. Its predecessors only copy memory,
// so it spins first, then yields.
func (l *Log) WaitVisible(cts uint64) { l.ring.wait(cts) }

// Failed is the error that made the log read-only for good, or nil.
func (l *Log) Failed() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes the log read-only for good: what is durable stays so, everything
// behind it has an unknown outcome. The first error counts; others, which the
// preparer and the leader can meet beside it, are told to the logger.
func (l *Log) fail(err error) {
	if !l.failure.CompareAndSwap(nil, &err) {
		if first := l.Failed(); !errors.Is(err, first) {
			l.opt.Logger.Error("log has failed already and meets another error", "error", err)
		}
		return
	}
	l.opt.Logger.Error("log is read-only after a failed write", "error", err)
	l.latch.Lock()
	defer l.latch.Unlock()
	l.dismiss(l.open)
	if l.leading {
		l.dismiss(l.flushing)
	}
}

// dismiss wakes everybody who waits for the round. Caller holds the latch.
func (l *Log) dismiss(r *openRound) {
	if r.room != nil {
		close(r.room.done)
		r.room = nil
	}
}

// readOnly is what a failed log answers to those who want to write.
func (l *Log) readOnly() error { return fmt.Errorf("%w: %w", fault.ErrReadOnly, l.Failed()) }

// Close makes everything durable that was reserved, unless the log has failed,
// and ends the log. When ctx ends first, commits without acknowledgement may
// be lost. Reserve fails from here on.
func (l *Log) Close(ctx context.Context) error {
	l.latch.Lock()
	closed := l.closed
	l.closed = true
	l.latch.Unlock()
	if closed {
		return fault.ErrClosed
	}
	err := l.Flush(ctx)
	if l.Failed() != nil {
		err = nil // it was reported to those who it concerned
	}
	l.flusher.close()
	l.preparer.close()
	l.seize()
	l.trim()
	for _, s := range l.streams {
		err = errors.Join(err, s.Close())
	}
	return err
}

// trim gives back what was prepared and not used. It does no harm if it fails.
func (l *Log) trim() {
	if l.Failed() != nil {
		return
	}
	for i, s := range l.streams {
		if err := s.Trim(); err != nil {
			l.opt.Logger.Warn("prepared space of the log stays behind", "stream", i, "error", err)
		}
	}
}

// seize takes the lead for good, so that nothing is written any more.
func (l *Log) seize() {
	for {
		l.latch.Lock()
		if !l.leading {
			l.leading, l.seized = true, true
			l.dismiss(l.open)
			l.latch.Unlock()
			return
		}
		r := l.flushing
		if l.durableRound.Load() >= r.number {
			r = l.open // the leader has not closed it yet
		}
		done := r.wait().done
		l.latch.Unlock()
		<-done
	}
}

// Segments lists the segment files by stream, ascending, without those of
// prepared space.
func (l *Log) Segments() []Segment {
	var list []Segment
	for _, s := range l.streams {
		list = append(list, s.Segments()...)
	}
	return list
}

// DurableEnds returns where what is durable ends in each stream.
func (l *Log) DurableEnds() []Position {
	l.latch.Lock()
	defer l.latch.Unlock()
	ends := make([]Position, len(l.durableEnds))
	for i := range l.durableEnds {
		ends[i] = Position(l.durableEnds[i].Load())
	}
	return ends
}

// SegmentSize is the size of a segment's file. It is less than a segment's for
// one that an incarnation has ended in.
func (l *Log) SegmentSize(stream int, first Position) (int64, error) {
	info, err := l.opt.FS.Stat(segmentPath(l.opt.Dir, stream, first))
	return info.Size, err
}

// RemoveSegment deletes a segment that nothing refers to any more: it ends at
// or before all replay positions, and no address in it is in use. A read of an
// address in it that is under way ends well. The segment in which the durable
// data end is refused.
func (l *Log) RemoveSegment(stream int, first Position) error {
	if stream < 0 || stream >= len(l.streams) || l.next(first) > Position(l.durableEnds[stream].Load()) {
		return fmt.Errorf("%w: log segment %s cannot be removed", fault.ErrNotFound, SegmentName(stream, first))
	}
	return l.streams[stream].Remove(first)
}
