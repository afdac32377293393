package gc

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/logstream"
)

func use(first int, bytes, live int64) Usage {
	return Usage{SegmentID: SegmentID{First: logstream.Position(first)}, Bytes: bytes, Live: live}
}

func TestVictims(t *testing.T) {
	const size = 1000
	choose := func(settled ...Usage) []Usage {
		return Victims(settled, DemandOf(settled, 1, size))
	}
	require.Empty(t, choose())
	require.Empty(t, choose(use(0, size, 1), use(1, size, 1)), "within the slack")
	require.Empty(t, choose(use(0, size, 0), use(1, size, 0), use(2, size, 0), use(3, size, 0)), "nothing to move")
	require.Equal(t, []Usage{use(1, size, 10), use(0, size, 20)},
		choose(use(0, size, 20), use(1, size, 10), use(2, size, 30), use(3, size, 40), use(4, size, 0)), "the emptiest, and no more than needed")
	full := make([]Usage, 50)
	for i := range full {
		full[i] = use(i, size, 600)
	}
	require.Empty(t, choose(full...), "full enough")
	over := use(0, size, size+100) // live bytes are bounds of sizes
	require.Empty(t, Victims([]Usage{over, over}, Demand{}), "a segment that is all live")
}

// TestVictimsReachTheGoal: what is left after a compaction is within the demand,
// and nothing is compacted while it is.
func TestVictimsReachTheGoal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const size = 1000
	for range 500 {
		var settled []Usage
		var some int64
		for i := range rng.IntN(60) {
			u := use(i, size, rng.Int64N(size))
			if settled = append(settled, u); u.Live > 0 {
				some += u.Bytes
			}
		}
		d := DemandOf(settled, 1, size)
		left := some
		victims := Victims(settled, d)
		for _, v := range victims {
			left += v.Live - v.Bytes
		}
		require.Equal(t, d.Exceeded(some), len(victims) > 0)
		require.False(t, d.Exceeded(left))
		if len(victims) > 0 {
			require.LessOrEqual(t, left, d.bytes(compactTo))
		}
	}
}

func TestSettled(t *testing.T) {
	s := logstream.Segment{Stream: 1, First: 1000, End: 2000}
	at := func(p logstream.Position) Kept { return Kept{Replay: []logstream.Position{0, p}} }
	require.True(t, Settled(s, []Kept{at(2000), at(3000)}))
	require.False(t, Settled(s, []Kept{at(1999), at(3000)}))
	require.False(t, Settled(s, []Kept{at(2000), at(1999)}))
	require.False(t, Settled(s, []Kept{at(2000)}), "there is no fallback but the log from its start")
	require.False(t, Settled(logstream.Segment{Stream: 2}, []Kept{at(2000), at(3000)}))
}

func TestCrowding(t *testing.T) {
	d := Demand{Live: 1000, Slack: 100}
	require.Zero(t, d.Crowding(2000))
	require.True(t, d.Presses(2001))
	require.Greater(t, d.Crowding(2100), 0.0)
	require.Less(t, d.Crowding(2100), d.Crowding(3000))
	require.EqualValues(t, 1, d.Crowding(4000))
	require.EqualValues(t, 1, d.Crowding(1<<60))
	require.EqualValues(t, 1, Demand{}.Crowding(100), "nothing may be there")
}
