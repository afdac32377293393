package logstream

// Space ahead. The prepared part of a stream behind what is reserved is
//
//	| reserved | ahead: for everybody | reserve: for urgent frames |
//
// Both parts grow with what the incarnation has written, from a quarter and
// three quarters of firstSpace up to a segment each, so that a small database
// takes little space and a large one always finds the next segment ready.

// firstSpace is what an incarnation prepares to begin with.
const firstSpace = 1 << 20

func (g geometry) firstSpace() Position { return Position(min(firstSpace, g.segmentBytes)) }

// reserve is the space that only urgent frames may use.
func (g geometry) reserve(written Position) Position {
	return min(Position(g.segmentBytes), max(g.firstSpace()/4, written))
}

// ahead is the space to prepare for the others.
func (g geometry) ahead(written Position) Position {
	return min(Position(g.segmentBytes), max(g.firstSpace()/4*3, written))
}

// written is what this incarnation has reserved up to end.
func (l *Log) written(stream int, end Position) Position {
	return end - l.goOn(l.start.Ends[stream])
}

// findSpace reports whether everything before end is prepared, and the reserve
// behind it if the frame may not use that. Caller holds the latch.
func (l *Log) findSpace(stream int, end Position, urgent bool) verdict {
	prepared := l.streams[stream].Prepared()
	written := l.written(stream, end)
	need := end
	if !urgent {
		need += l.reserve(written)
	}
	if end+l.reserve(written)+l.ahead(written)/2 > prepared {
		l.preparer.kick()
	}
	if need <= prepared {
		return granted
	}
	l.wanted[stream] = max(l.wanted[stream], need)
	return notReady
}

// spaceTargets says how far each stream is to be prepared.
func (l *Log) spaceTargets() (targets []Position, begun bool) {
	l.latch.Lock()
	defer l.latch.Unlock()
	l.preparer.kicked = false
	for i := range l.streams {
		end := l.reservedEnd(i)
		written := l.written(i, end)
		targets = append(targets, max(end+l.reserve(written)+l.ahead(written), l.wanted[i]))
	}
	return targets, l.begun
}

// reservedEnd is where the frames reserved in a stream end.
func (l *Log) reservedEnd(stream int) Position {
	if p := &l.open.parts[stream]; p.used > 0 {
		return p.base + Position(alignSector(p.used))
	}
	return max(l.tails[stream], l.goOn(l.start.Ends[stream]))
}
