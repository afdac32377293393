package recovery

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// sound says what in a checkpoint record nobody can have written, whose checksum
// is right. What holds here need not be asked again by those who use the record:
// there is a position for every stream and a table at most once, numbers are
// in their ranges and above those of earlier records, and files lie in the
// checkpoint directory.
func (c *Checkpoint) sound(before *Manifest) error {
	h := &before.Header
	if n := len(before.Checkpoints); n > 0 && (c.Number <= before.Checkpoints[n-1].Number || c.CTS < before.Checkpoints[n-1].CTS) {
		return fmt.Errorf("checkpoint %d of CTS %d follows checkpoint %d of CTS %d", c.Number, c.CTS, before.Checkpoints[n-1].Number, before.Checkpoints[n-1].CTS)
	}
	if c.Number == 0 || c.Number > maxNumber || c.CTS > logstream.MaxCTS || c.Round > logstream.MaxCTS {
		return fmt.Errorf("checkpoint %d of CTS %d and round %d", c.Number, c.CTS, c.Round)
	}
	if err := soundPositions(c.Replay, c.Ends, h.LogStreams); err != nil {
		return err
	}
	for _, live := range c.Live {
		if live.Stream < 0 || live.Stream >= h.LogStreams || live.First%logstream.Position(h.SegmentBytes) != 0 || live.First >= logstream.MaxPosition || live.Bytes <= 0 {
			return fmt.Errorf("%d live bytes in stream %d at %d", live.Bytes, live.Stream, live.First)
		}
	}
	if err := c.soundTables(); err != nil {
		return err
	}
	return c.soundFiles()
}

func soundPositions(replay, ends []logstream.Position, streams int) error {
	if len(replay) != streams || len(ends) != streams {
		return fmt.Errorf("%d and %d positions for %d streams", len(replay), len(ends), streams)
	}
	for i := range replay {
		if replay[i] > ends[i] || ends[i] > logstream.MaxPosition {
			return fmt.Errorf("stream %d replays from %d to %d", i, replay[i], ends[i])
		}
	}
	return nil
}

func (c *Checkpoint) soundTables() error {
	tables := map[rowid.Table]bool{}
	for _, t := range c.Tables {
		if tables[t.Table] || t.Generation.Number == 0 || t.Generation.Number > c.Number {
			return fmt.Errorf("table %d, generation %d", t.Table, t.Generation.Number)
		}
		tables[t.Table] = true
	}
	return nil
}

// soundFiles makes sure that nothing outside of the checkpoint directory is read
// or, when the checkpoint is let go, removed.
func (c *Checkpoint) soundFiles() error {
	for name := range needs(c).Files {
		inside, ok := strings.CutPrefix(name, checkpointDir+"/")
		if !ok || !fs.ValidPath(inside) || strings.ContainsAny(inside, "\\:\x00") {
			return fmt.Errorf("file %q", name)
		}
	}
	negative := func(f index.FileInfo) bool { return f.Size < 0 }
	for _, x := range c.Indexes {
		if x.Index < 0 || slices.ContainsFunc(x.Files, negative) {
			return fmt.Errorf("index %d of table %d", x.Index, x.Table)
		}
	}
	return nil
}
