package gc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/logstream"
)

func TestSegments(t *testing.T) {
	const size = 1000
	var all []logstream.Segment
	for stream := range 2 {
		for first := logstream.Position(0); first < 5*size; first += size {
			all = append(all, logstream.Segment{Stream: stream, First: first, End: first + size})
		}
	}
	older := Kept{Replay: []logstream.Position{2 * size, 3*size - 1}, Live: map[SegmentID]int64{{0, 0}: 10}}
	newer := Kept{Replay: []logstream.Position{4 * size, 4 * size}, Live: map[SegmentID]int64{{1, 0}: 1, {0, 3 * size}: 5}}

	require.Empty(t, Segments(all, nil))
	require.Empty(t, Segments(all, []Kept{newer}), "the fallback is the log from its start")
	require.Equal(t, []SegmentID{{0, size}, {1, size}}, Segments(all, []Kept{older, newer}))
	short := Kept{Replay: []logstream.Position{4 * size}}
	require.Equal(t, []SegmentID{{0, 0}, {0, size}, {0, 2 * size}, {0, 3 * size}}, Segments(all, []Kept{short, short}), "an unknown stream stays")
}

func TestFiles(t *testing.T) {
	kept := []Kept{{Files: map[string]bool{"a": true, "b": true}}, {Files: map[string]bool{"b": true, "c": true}}}
	require.Equal(t, []string{"d"}, Files([]string{"a", "b", "c", "d"}, kept))
	require.Equal(t, []string{"a"}, Files([]string{"a"}, nil))
}
