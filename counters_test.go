package rekindle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/recovery"
	"github.com/rekindledb/rekindle/rowid"
)

// aged returns an empty database after a very long life: its last checkpoint
// has the numbers that old gives it, and the log ends where it says.
func aged(t *testing.T, o rekindle.Options, old func(c *recovery.Checkpoint)) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	db, err := rekindle.Open(t.Context(), "/db", o.OnFS(disk))
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	c := recovery.Checkpoint{Number: 1, Ends: []logstream.Position{0}}
	old(&c)
	alter(t, disk, only(t, disk, "/db/MANIFEST-*"), func(b []byte) []byte {
		var h recovery.Header
		require.NoError(t, json.Unmarshal(b[24:], &h))
		logTo(t, disk, &h, &c)
		c.Replay = c.Ends
		b, err := recovery.AppendRecord(b, 1, &c)
		require.NoError(t, err)
		return b
	})
	return disk
}

// logTo makes the log go on to where the checkpoint ends, with nothing in it that
// counts.
func logTo(t *testing.T, disk *vfs.Mem, h *recovery.Header, c *recovery.Checkpoint) {
	t.Helper()
	if c.Ends[0] == 0 {
		return
	}
	o := logstream.Options{FS: disk, Dir: "/db/log", DatabaseID: h.DatabaseID, Streams: 1, SegmentBytes: h.SegmentBytes}
	log, err := logstream.Open(o, logstream.Start{NextCTS: c.CTS + 1, NextRound: c.Round + 1, Ends: c.Ends})
	require.NoError(t, err)
	bytes := logstream.FrameBytes(logstream.RecordBytes(0, 0))
	ticket, err := log.Reserve(t.Context(), logstream.Request{Bytes: bytes})
	require.NoError(t, err)
	e := log.Encode(&ticket)
	e.Append(logstream.Delete, rowid.Make(0, 1), 0, nil, nil)
	e.Finish()
	log.Publish(ticket)
	require.NoError(t, log.Acknowledge(t.Context(), ticket, true))
	mark, err := log.Mark(t.Context())
	require.NoError(t, err)
	c.CTS, c.Round, c.Ends = mark.CTS, mark.Round, mark.Ends
	require.NoError(t, log.Close(t.Context()))
}

// TestCountersNearTheirMaximum: a database whose counters come to their end goes
// on to the last, then refuses with an error that says so, loses nothing, and
// can be opened and read for ever.
func TestCountersNearTheirMaximum(t *testing.T) {
	cases := map[string]func(c *recovery.Checkpoint){
		"CTS":        func(c *recovery.Checkpoint) { c.CTS = logstream.MaxCTS - 500 },
		"round":      func(c *recovery.Checkpoint) { c.Round = logstream.MaxCTS - 500 },
		"position":   func(c *recovery.Checkpoint) { c.Ends[0] = logstream.MaxPosition - 16*logstream.MinSegmentBytes },
		"checkpoint": func(c *recovery.Checkpoint) { c.Number = 1<<62 - 4 },
		"all": func(c *recovery.Checkpoint) {
			c.CTS, c.Round, c.Number = logstream.MaxCTS-500, logstream.MaxCTS-500, 1<<62-4
			c.Ends[0] = logstream.MaxPosition - 16*logstream.MinSegmentBytes
		},
	}
	for name, old := range cases {
		for _, strategy := range rekindle.IndexStrategies() {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				t.Parallel()
				o := rekindle.Options{SegmentBytes: logstream.MinSegmentBytes, IndexStrategy: strategy, CheckpointBytes: 256 << 10}
				liveOut(t, aged(t, o, old), o)
			})
		}
	}
}

// TestStrayNumbers: what lies around with the name of a checkpoint or manifest
// that is far away does not take its number.
func TestStrayNumbers(t *testing.T) {
	for _, stray := range []string{"ckpt/18446744073709551615", "ckpt/-1", "ckpt/99999999999999999999", "MANIFEST-18446744073709551615"} {
		disk := vfs.NewMem()
		o := rekindle.Options{SegmentBytes: logstream.MinSegmentBytes}
		db, _ := openItems(t, disk, o)
		require.NoError(t, db.Close(t.Context()))
		require.NoError(t, disk.MkdirAll("/db/"+stray))
		for range 3 {
			db, items := openItems(t, disk, o)
			update(t, db, func(tx *rekindle.Tx) {
				n := int64(len(allItems(t, db, items)))
				require.NoError(t, items.Insert(tx, &item{ID: n, Name: fmt.Sprint(n)}))
			})
			require.NoError(t, db.Close(t.Context()))
		}
		db, items := openItems(t, disk, o)
		require.Len(t, allItems(t, db, items), 3, stray)
		require.NoError(t, db.Close(t.Context()))
	}
}

// liveOut writes until the database takes no more, in many lives.
func liveOut(t *testing.T, disk *vfs.Mem, o rekindle.Options) {
	ctx := t.Context()
	var want []item
	for range 10 {
		db, items := openItems(t, disk, o)
		require.Equal(t, want, allItems(t, db, items))
		_, err := db.CrossCheck(ctx)
		require.NoError(t, err)
		for range 100 {
			row := item{ID: int64(len(want)), Name: fmt.Sprintf("%01000d", len(want))}
			if err = db.Update(ctx, func(tx *rekindle.Tx) error { return items.Insert(tx, &row) }); err != nil {
				require.True(t, errors.Is(err, rekindle.ErrReadOnly) || errors.Is(err, rekindle.ErrNoSpace), err)
				break
			}
			want = append(want, row)
		}
		require.Equal(t, want, allItems(t, db, items))
		if err := db.Close(ctx); err != nil {
			require.ErrorContains(t, err, "used up")
			require.ErrorIs(t, err, rekindle.ErrNoSpace)
		}
	}
	require.Greater(t, len(want), 300)
}
