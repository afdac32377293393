package gc

import (
	"cmp"
	"slices"

	"github.com/rekindledb/rekindle/logstream"
)

// The part of the log that both kept checkpoints have behind them takes at most
//
//	2 × live bytes + slackSegments segments a stream
//
// Compaction begins at a lower factor, because garbage comes up while it runs. It
// ends at one that is lower still, and does not rest above the third. The lower
// they are, the more live bytes are copied to free one.
const (
	compactAbove  = 1.75
	compactTo     = 1.5
	compactPress  = 1.9
	slackSegments = 2

	// leastUsage is a segment's part that a file counts for at least: many short
	// ones, of short lives of the database, are not free either.
	leastUsage = 64
)

// Usage is what a segment takes on disk and how much of it is live.
type Usage struct {
	SegmentID
	Bytes int64
	Live  int64
}

// Demand is what a log should take on disk.
type Demand struct {
	Live  int64 // bytes of records that are live
	Slack int64 // bytes that may be dead in any case
}

func (d Demand) bytes(factor float64) int64 { return int64(factor*float64(d.Live)) + d.Slack }

// UsageOf describes a segment of the given size whose file has so many bytes.
func UsageOf(id SegmentID, segmentBytes, file, live int64) Usage {
	return Usage{SegmentID: id, Bytes: max(file, segmentBytes/leastUsage), Live: live}
}

// DemandOf sums up the settled segments of a log.
func DemandOf(settled []Usage, streams int, segmentBytes int64) Demand {
	d := Demand{Slack: slackSegments * int64(streams) * segmentBytes}
	for _, u := range settled {
		d.Live += u.Live
	}
	return d
}

// Exceeded reports whether so many bytes are too many.
func (d Demand) Exceeded(bytes int64) bool { return bytes > d.bytes(compactAbove) }

// Presses reports whether so many bytes are nearly more than the bound.
func (d Demand) Presses(bytes int64) bool { return bytes > d.bytes(compactPress) }

// Crowding is by how much of itself so many bytes pass what Presses, at most 1.
func (d Demand) Crowding(bytes int64) float64 {
	most := max(1, d.bytes(compactPress))
	return min(1, max(0, float64(bytes-most)/float64(most)))
}

// Victims chooses the segments whose live rows should be moved, so that the
// settled part of the log comes down to its demand: those with the lowest live
// share, the emptiest first. Segments without a live byte need no compaction.
func Victims(settled []Usage, d Demand) []Usage {
	var total int64
	var some []Usage
	for _, u := range settled {
		if u.Live > 0 {
			total += u.Bytes
			some = append(some, u)
		}
	}
	if !d.Exceeded(total) {
		return nil
	}
	slices.SortFunc(some, func(a, b Usage) int {
		return cmp.Or(
			cmp.Compare(float64(a.Live)/float64(a.Bytes), float64(b.Live)/float64(b.Bytes)),
			cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.First, b.First))
	})
	n := 0
	for ; n < len(some) && total > d.bytes(compactTo) && some[n].Live < some[n].Bytes; n++ {
		total -= some[n].Bytes - some[n].Live
	}
	return some[:n]
}

// Settled reports whether all kept checkpoints have a segment behind them: none
// needs it for its tail.
func Settled(s logstream.Segment, kept []Kept) bool {
	for _, k := range kept {
		if s.Stream >= len(k.Replay) || s.End > k.Replay[s.Stream] {
			return false
		}
	}
	return len(kept) >= KeptCheckpoints
}
