package logstream

import (
	"context"
	"slices"
)

// Mark is a point of the log up to which everything is durable: a checkpoint
// that holds all commits up to CTS needs the log from Replay on.
type Mark struct {
	Round uint64
	CTS   uint64 // the last one of Round
	// Replay is where scanning for what is newer than CTS begins: where Round
	// ends, or before, if the first part of an open group lies there.
	Replay []Position
	Ends   []Position // where Round ends: durable
}

// openGroup is a group of parts that is not durable in full.
type openGroup struct {
	round     uint64     // of part 1
	starts    []Position // where that round begins
	lastRound uint64     // of the last part, 0 until it is reserved
}

// openAt reports whether a replay of what is newer than round needs part 1.
func (g *openGroup) openAt(round uint64) bool {
	return g.round <= round && (g.lastRound == 0 || g.lastRound > round)
}

// noteGroup keeps track of a part. Caller holds the latch.
func (l *Log) noteGroup(t *Ticket) {
	switch {
	case t.part == 1:
		l.groups[t.first] = &openGroup{round: t.Round, starts: slices.Clone(l.open.starts)}
	case t.part == t.parts:
		if g := l.groups[t.first]; g != nil {
			g.lastRound = t.Round
		}
	}
}

// forgetGroups drops the groups that are durable in full. Caller holds the
// latch.
func (l *Log) forgetGroups(durable uint64) {
	for first, g := range l.groups {
		if g.lastRound != 0 && g.lastRound <= durable {
			delete(l.groups, first)
		}
	}
}

// AbandonGroup gives up the group whose part 1 has the CTS first, because its
// last part will not be reserved. Recovery drops its parts.
func (l *Log) AbandonGroup(first uint64) {
	l.latch.Lock()
	defer l.latch.Unlock()
	delete(l.groups, first)
}

// Mark returns the end of the newest durable round. It flushes first if that
// is the round of the Mark before and something newer waits for a flush.
func (l *Log) Mark(ctx context.Context) (Mark, error) {
	if l.Failed() != nil {
		return Mark{}, l.readOnly()
	}
	l.latch.Lock()
	stale := l.marked == l.durableRound.Load()
	l.latch.Unlock()
	if stale {
		if err := l.Flush(ctx); err != nil {
			return Mark{}, err
		}
	}
	l.latch.Lock()
	defer l.latch.Unlock()
	m := Mark{Round: l.durableRound.Load(), CTS: l.durableCTS.Load()}
	for i := range l.durableEnds {
		m.Ends = append(m.Ends, Position(l.durableEnds[i].Load()))
	}
	m.Replay = l.replayAt(m.Round, m.Ends)
	l.marked = m.Round
	return m, nil
}

// replayAt is where the oldest round begins that a replay behind round needs.
func (l *Log) replayAt(round uint64, ends []Position) []Position {
	oldest := &openGroup{round: round + 1, starts: ends}
	for _, g := range l.groups {
		if g.openAt(round) && g.round < oldest.round {
			oldest = g
		}
	}
	return slices.Clone(oldest.starts)
}
