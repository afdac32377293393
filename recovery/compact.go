package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/internal/epoch"
)

// compaction is the part of a Checkpointer that compacts the log.
type compaction struct {
	mu sync.Mutex // one pass at a time; taken before Checkpointer.mu
	h  *epoch.Handle

	rows  atomic.Int64
	bytes atomic.Int64
	freed atomic.Int64

	crowding atomic.Uint64 // see Crowding; bits of a float64

	// Guarded by Checkpointer.mu.
	done   map[gc.SegmentID]uint64 // segments gone through, and the newest CTS then
	failed error                   // a relocation is in the log and not in the array
	stuck  bool                    // the last pass has failed
}

// Compaction are totals of the compaction of the log.
type Compaction struct {
	Rows  int64 // moved
	Bytes int64 // of records written for that
	Freed int64 // segments removed, with those that became empty by themselves
}

// Compacted returns the totals.
func (c *Checkpointer) Compacted() Compaction {
	return Compaction{Rows: c.compaction.rows.Load(), Bytes: c.compaction.bytes.Load(), Freed: c.compaction.freed.Load()}
}

// Pass is what a Compact has done, and what is left to do.
type Pass struct {
	Segments int  // gone through
	Partial  bool // others are left to go through
	Wanted   bool // another checkpoint, a Renew, makes the log smaller
	Pressing bool // the log is close to its bound, or beyond
}

// Compact moves the live rows of the emptiest log segments to the end of the log
// if that takes more than it should, until about limit bytes are written. The
// segments go with the second checkpoint after it. No transaction meets a conflict
// or waits because of it but for the disk.
func (c *Checkpointer) Compact(ctx context.Context, limit int64) (pass Pass, err error) {
	c.compaction.mu.Lock()
	defer c.compaction.mu.Unlock()
	defer func() { c.noteOutcome(err) }()
	victims, pressing, err := c.chooseVictims()
	if err != nil {
		return pass, err
	}
	pass.Pressing = pressing
	m := newMover(c, pressing)
	for _, v := range victims {
		if pass.Partial = m.written+int64(m.bytes) >= limit || m.urgent; pass.Partial {
			break
		}
		if err := m.empty(ctx, v.SegmentID); err != nil {
			return pass, fmt.Errorf("compaction of log segment %d:%#x: %w", v.Stream, uint64(v.First), err)
		}
		pass.Segments++
	}
	if err := m.flush(ctx); err != nil {
		return pass, fmt.Errorf("compaction of the log: %w", err)
	}
	if pass.Segments > 0 {
		c.logger.Info("log compacted", "segments", pass.Segments, "bytes", m.written)
	}
	pass.Wanted, err = c.renewalHelps()
	pass.Wanted = pass.Wanted || pass.Segments > 0
	return pass, err
}

// chooseVictims plans a pass, and says whether the log is close to its bound.
func (c *Checkpointer) chooseVictims() (victims []gc.Usage, pressing bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled, demand, err := c.settled(c.needs())
	if err != nil {
		return nil, false, err
	}
	pressing = demand.Presses(bytesOf(settled))
	open := slices.DeleteFunc(settled, func(u gc.Usage) bool { return c.compactedAlready(u) })
	if c.Eager {
		return open, true, nil
	}
	return gc.Victims(open, demand), pressing, nil
}

// Crowding says how much of the log's bound it takes beyond where a compaction
// presses, as far as a compaction can change that: 0 normally, 1 for twice the
// bound. Who writes then should do so more slowly, because the compaction does not
// keep up.
func (c *Checkpointer) Crowding() float64 { return math.Float64frombits(c.compaction.crowding.Load()) }

// Measure looks anew at how much the log takes, as one does behind a checkpoint. That
// many bytes more than the bound are what the last one has left to the compaction.
func (c *Checkpointer) Measure(more int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled, demand, err := c.settled(c.needs())
	if err != nil || c.compaction.stuck || len(c.pinned) > 0 {
		c.compaction.crowding.Store(0) // time does not help
		return err
	}
	movable := slices.DeleteFunc(settled, func(u gc.Usage) bool { return c.compaction.done[u.SegmentID] == never })
	demand.Slack += more
	c.compaction.crowding.Store(math.Float64bits(demand.Crowding(bytesOf(movable))))
	return nil
}

func (c *Checkpointer) noteOutcome(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compaction.stuck = err != nil
	if err != nil {
		c.compaction.crowding.Store(0)
	}
}

// never is a commit that no checkpoint describes.
const never = ^uint64(0)

// compactedAlready reports whether a pass has gone through a segment. It is not
// gone through again, even if the checkpoint behind the pass finds something live
// in it after all: what was missed once is missed again. Caller holds c.mu.
func (c *Checkpointer) compactedAlready(u gc.Usage) bool {
	until, done := c.compaction.done[u.SegmentID]
	if done && u.Live > 0 && c.newestCTS.Load() >= until {
		c.compaction.done[u.SegmentID] = never
		c.logger.Warn("log segment keeps live rows that a compaction does not find in it", "stream", u.Stream, "position", uint64(u.First), "bytes", u.Live)
	}
	return done
}

// noteCompacted notes that a pass has gone through a segment, for as long as the
// newest checkpoint is older than until.
func (c *Checkpointer) noteCompacted(id gc.SegmentID, until uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compaction.done == nil {
		c.compaction.done = map[gc.SegmentID]uint64{}
	}
	c.compaction.done[id] = until
}

// settled describes the segments that none of the given checkpoints, the newest
// last, needs for its tail. Caller holds c.mu.
func (c *Checkpointer) settled(kept []gc.Kept) ([]gc.Usage, gc.Demand, error) {
	var list []gc.Usage
	for _, s := range c.Log.Segments() {
		if !gc.Settled(s, kept) {
			continue
		}
		size, err := c.Log.SegmentSize(s.Stream, s.First)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, gc.Demand{}, err
		}
		id := gc.SegmentID{Stream: s.Stream, First: s.First}
		list = append(list, gc.UsageOf(id, c.header.SegmentBytes, size, kept[len(kept)-1].Live[id]))
	}
	return list, gc.DemandOf(list, c.header.LogStreams, c.header.SegmentBytes), nil
}

func bytesOf(list []gc.Usage) (sum int64) {
	for _, u := range list {
		sum += u.Bytes
	}
	return sum
}

// renewalHelps reports whether the log takes more than it should and a Renew would
// change that: because segments wait for the older one of the kept checkpoints, or
// because there is no older one and so no compaction either.
func (c *Checkpointer) renewalHelps() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.needs()
	if len(kept) == 0 {
		return false, nil
	}
	newest := kept[len(kept)-1]
	renewed := []gc.Kept{newest, newest}
	all := c.Log.Segments()
	if len(kept) == gc.KeptCheckpoints && len(gc.Segments(all, renewed)) == len(gc.Segments(all, kept)) {
		return false, nil
	}
	settled, demand, err := c.settled(renewed)
	return demand.Exceeded(bytesOf(settled)), err
}
