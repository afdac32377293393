package logstream

import (
	"context"
	"fmt"
	"sync"

	"github.com/rekindledb/rekindle/internal/fault"
)

// merger takes the rounds of all streams in order and accepts those that are
// complete in every participant. It stops at the first one that is not.
type merger struct {
	o        *ScanOptions
	trails   []*trail
	decoders []*decoder
	heads    []head
	groups   *assembler
	done     int64 // bytes consumed

	// The end of what was accepted.
	ends   []Position
	starts []Position // as the last round's header says: durable
	number uint64     // the last round, 0 if none was accepted
	cts    uint64     // its last CTS
	inc    uint64
	reason string // why the next round was not accepted
}

// head is the next round of one stream.
type head struct {
	batch *batch
	next  int
	at    int // of the next frame while the round is delivered
}

func newMerger(o *ScanOptions, trails []*trail, fn func(*Group) error) *merger {
	m := &merger{o: o, trails: trails, heads: make([]head, len(trails)), groups: newAssembler(trails, o.AfterCTS, fn)}
	for i, t := range trails {
		m.ends = append(m.ends, o.From[i])
		m.decoders = append(m.decoders, newDecoder(t, o.From[i]))
	}
	return m
}

// run decodes all streams beside each other and merges them. What is read first is
// decoded here: often there is no more.
func (m *merger) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, d := range m.decoders {
		if d.begin() {
			wg.Go(func() { d.run(ctx) })
		}
	}
	for !m.finished() {
		r, err := m.next()
		if err != nil || r == nil {
			return err
		}
		if m.reason = m.check(r); m.reason != "" {
			return nil
		}
		if err := m.deliver(r); err != nil {
			return err
		}
	}
	return nil
}

// finished reports whether all rounds that were asked for are accepted.
func (m *merger) finished() bool {
	until := m.o.UntilRound
	return until != 0 && max(m.number, m.o.AfterRound) >= until
}

// head returns the next round of a stream, nil where it stopped.
func (m *merger) head(s int) (*round, error) {
	h, d := &m.heads[s], m.decoders[s]
	for h.batch == nil || h.next == len(h.batch.rounds) {
		if h.batch != nil {
			m.progress(h.batch.bytes())
			d.free <- h.batch
			h.batch = nil
		}
		b, ok := <-d.out
		if !ok {
			return nil, d.err
		}
		h.batch, h.next = b, 0
	}
	return &h.batch.rounds[h.next], nil
}

// stopped reports whether a stream has no round behind the accepted ones.
func (m *merger) stopped(s int) bool { return m.heads[s].batch == nil }

func (m *merger) progress(n int64) {
	m.done += n
	if m.o.Progress != nil {
		m.o.Progress(min(m.done, m.o.total), m.o.total)
	}
}

// next returns the oldest round that any stream has next.
func (m *merger) next() (oldest *round, err error) {
	for s := range m.heads {
		r, err := m.head(s)
		if err != nil {
			return nil, err
		}
		if r != nil && (oldest == nil || r.number < oldest.number) {
			oldest = r
		}
	}
	return oldest, nil
}

// check says why a round is not the next one of the log, or not complete.
func (m *merger) check(r *round) string {
	switch {
	case m.number != 0 && r.number != m.number+1:
		return fmt.Sprintf("round %d follows round %d", r.number, m.number)
	case m.number != 0 && r.first != m.cts+1:
		return fmt.Sprintf("round %d begins with CTS %d, CTS %d was the last", r.number, r.first, m.cts)
	case r.incarnation < m.inc:
		return fmt.Sprintf("round %d is of incarnation %d, after incarnation %d", r.number, r.incarnation, m.inc)
	case m.number == 0 && m.o.AfterRound != 0 && r.number > m.o.AfterRound+1:
		return fmt.Sprintf("round %d is the first one after round %d", r.number, m.o.AfterRound)
	}
	for s, end := range r.ends {
		if end != m.ends[s] && m.trails[s].follow(end) != m.trails[s].follow(m.ends[s]) {
			return fmt.Sprintf("round %d says that stream %d ended at %#x, not at %#x", r.number, s, uint64(end), uint64(m.ends[s]))
		}
	}
	for s := range streamSet(r.participants) {
		o, err := m.head(s)
		if err != nil || o == nil || !o.agrees(&r.roundHeader) {
			return fmt.Sprintf("round %d is not complete in stream %d", r.number, s)
		}
	}
	return ""
}

// deliver hands on the frames of a complete round in CTS order.
func (m *merger) deliver(r *round) error {
	if r.incarnation != m.inc {
		m.groups.forget()
	}
	m.number, m.inc = r.number, r.incarnation
	m.starts = append(m.starts[:0], r.ends...)
	copy(m.ends, r.ends)
	participants, last := r.participants, r.last
	for m.cts = r.first - 1; m.cts < last; {
		s, err := m.holder(participants, m.cts+1, r)
		if err != nil {
			return err
		}
		if err := m.deliverFrom(s, last); err != nil {
			return err
		}
	}
	for s := range streamSet(participants) {
		h := &m.heads[s]
		if o := &h.batch.rounds[h.next]; h.at != len(o.frames) {
			return m.misplaced(o, h.at)
		}
		m.ends[s] = h.batch.rounds[h.next].end()
		h.next, h.at = h.next+1, 0
	}
	return m.checkMark()
}

// holder is the participant whose next frame has the CTS.
func (m *merger) holder(participants, cts uint64, r *round) (int, error) {
	for s := range streamSet(participants) {
		h := &m.heads[s]
		o := &h.batch.rounds[h.next]
		if h.at < len(o.frames) && readFrameHeader(o.frames[h.at:]).cts == cts {
			return s, nil
		}
	}
	return 0, m.misplaced(r, 0)
}

// deliverFrom hands on the frames of stream s as long as they are the next.
func (m *merger) deliverFrom(s int, last uint64) error {
	h := &m.heads[s]
	r := &h.batch.rounds[h.next]
	for h.at < len(r.frames) && m.cts < last {
		f := readFrameHeader(r.frames[h.at:])
		if f.cts != m.cts+1 {
			return nil
		}
		body := r.frames[h.at : h.at+f.length]
		if err := m.groups.frame(r, &f, body, r.framesAt()+Position(h.at)); err != nil {
			return err
		}
		h.at += f.length
		m.cts++
	}
	return nil
}

func (m *merger) misplaced(r *round, at int) error {
	t := m.trails[r.stream]
	first := t.segmentOf(r.pos)
	return fault.Corrupt(t.path(first), int64(r.framesAt()-first)+int64(at), int64(len(r.frames)-at),
		"the frames of round %d are not the commits %d to %d", r.number, r.first, r.last)
}

// checkMark compares the log with the checkpoint that the scan goes on from.
func (m *merger) checkMark() error {
	if m.number != m.o.AfterRound || m.cts == m.o.AfterCTS {
		return nil
	}
	return &fault.File{Kind: fault.ErrCorrupt, Path: m.o.Dir,
		Reason: fmt.Sprintf("round %d ends with CTS %d, the checkpoint says %d", m.number, m.cts, m.o.AfterCTS)}
}
