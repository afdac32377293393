package logstream

import (
	"cmp"
	"slices"
)

// ctsRun is commits without one missing between them. Every commit has one frame,
// so a missing one is a frame that cannot be read, or in a segment that is gone.
type ctsRun struct{ first, last uint64 }

// see notes that the frame of a commit is whole.
func (s *Survey) see(cts uint64) {
	if n := len(s.runs); n > 0 && s.runs[n-1].last+1 == cts {
		s.runs[n-1].last = cts
		return
	}
	s.runs = append(s.runs, ctsRun{cts, cts})
}

// joinRuns sorts the runs and joins those that touch.
func (s *Survey) joinRuns() {
	slices.SortFunc(s.runs, func(a, b ctsRun) int { return cmp.Compare(a.first, b.first) })
	joined := s.runs[:0]
	for _, r := range s.runs {
		if n := len(joined); n > 0 && r.first <= joined[n-1].last+1 {
			joined[n-1].last = max(joined[n-1].last, r.last)
			continue
		}
		joined = append(joined, r)
	}
	s.runs = joined
}

// WholeFrom is the first commit from which on none is missing, as far as the log
// goes.
func (s *Survey) WholeFrom() uint64 {
	if len(s.runs) == 0 {
		return 0
	}
	return s.runs[len(s.runs)-1].first
}

// Lost counts the commits behind after of which the log does not have the whole
// frame, though it has later ones or they are known to have been: until there.
func (s *Survey) Lost(after, until uint64) (n uint64) {
	for _, r := range s.runs {
		if r.first > after+1 {
			n += r.first - after - 1
		}
		after = max(after, r.last)
	}
	if until > after {
		n += until - after
	}
	return n
}
