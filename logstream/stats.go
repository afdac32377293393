package logstream

import "sync/atomic"

type counters struct {
	rounds atomic.Uint64
	bytes  atomic.Uint64
}

// Stats are figures since Open, and the state of the log.
type Stats struct {
	Rounds    uint64 // flushed
	Bytes     uint64 // written in rounds, padding included
	Unflushed int    // bytes in the open round, in its fullest stream
	Segments  int
	Prepared  int64 // bytes of prepared space that no frame has taken, over all streams
}

// Stats describes the log.
func (l *Log) Stats() Stats {
	st := Stats{Rounds: l.counters.rounds.Load(), Bytes: l.counters.bytes.Load(), Segments: len(l.Segments())}
	l.latch.Lock()
	defer l.latch.Unlock()
	st.Unflushed = l.open.bytes()
	for i, s := range l.streams {
		st.Prepared += int64(s.Prepared() - l.reservedEnd(i))
	}
	return st
}
