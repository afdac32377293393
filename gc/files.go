package gc

import (
	"slices"

	"github.com/rekindledb/rekindle/logstream"
)

// KeptCheckpoints is how many complete checkpoints stay usable, always.
const KeptCheckpoints = 2

// Kept is what a kept checkpoint needs.
type Kept struct {
	Replay []logstream.Position // per stream: where its replay starts
	Live   map[SegmentID]int64  // bytes of records that its array names
	Files  map[string]bool      // checkpoint files it refers to
}

// SegmentID names a segment of the log.
type SegmentID struct {
	Stream int
	First  logstream.Position
}

// Segments returns the segments that no kept checkpoint needs: each ends at or
// before the replay positions of all of them and holds no live byte in any.
// With fewer than KeptCheckpoints nothing goes, because then the fallback is
// the log from its start.
func Segments(all []logstream.Segment, kept []Kept) []SegmentID {
	if len(kept) < KeptCheckpoints {
		return nil
	}
	var free []SegmentID
	for _, s := range all {
		if !slices.ContainsFunc(kept, func(k Kept) bool { return k.Needs(s) }) {
			free = append(free, SegmentID{s.Stream, s.First})
		}
	}
	return free
}

// Needs reports whether a segment of the log holds a live byte or a part of the
// tail.
func (k Kept) Needs(s logstream.Segment) bool {
	return s.Stream >= len(k.Replay) || s.End > k.Replay[s.Stream] || k.Live[SegmentID{s.Stream, s.First}] != 0
}

// Files returns those of the existing checkpoint files that no kept checkpoint
// refers to.
func Files(existing []string, kept []Kept) []string {
	var free []string
	for _, name := range existing {
		if !referred(name, kept) {
			free = append(free, name)
		}
	}
	return free
}

func referred(name string, kept []Kept) bool {
	for _, k := range kept {
		if k.Files[name] {
			return true
		}
	}
	return false
}
