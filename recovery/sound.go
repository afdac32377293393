package recovery

import (
	"fmt"
	"path"
	"strings"

	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// sound says what in a checkpoint record nobody can have written, whose checksum
// is right. What holds here need not be asked again by those who use the record:
// there is a position for every stream and a table at most once, numbers are
// in their ranges and above those of earlier records, and files have the names
// that the engine gives, so that none leads to a file that is not part of this
// database.
func (c *Checkpoint) sound(before *Manifest) error {
	h := &before.Header
	if n := len(before.Checkpoints); n > 0 && !c.follows(&before.Checkpoints[n-1]) {
		return fmt.Errorf("checkpoint %d of CTS %d follows checkpoint %d of CTS %d", c.Number, c.CTS, before.Checkpoints[n-1].Number, before.Checkpoints[n-1].CTS)
	}
	if c.Number == 0 || c.Number > maxNumber || c.CTS > logstream.MaxCTS || c.Round > logstream.MaxCTS {
		return fmt.Errorf("checkpoint %d of CTS %d and round %d", c.Number, c.CTS, c.Round)
	}
	if err := soundPositions(c.Replay, c.Ends, h.LogStreams); err != nil {
		return err
	}
	for _, check := range []func(*Header) error{c.soundLive, c.soundTables, c.soundIndexes, c.soundSuspects} {
		if err := check(h); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checkpoint) follows(before *Checkpoint) bool {
	return c.Number > before.Number && c.CTS >= before.CTS && c.Round >= before.Round
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

func (c *Checkpoint) soundLive(h *Header) error {
	for _, l := range c.Live {
		if l.Stream < 0 || l.Stream >= h.LogStreams || l.First%logstream.Position(h.SegmentBytes) != 0 || l.First >= logstream.MaxPosition {
			return fmt.Errorf("live bytes in stream %d at %d", l.Stream, l.First)
		}
		if l.Bytes <= 0 || l.Bytes > 2*h.SegmentBytes { // a size class is at most an eighth too large
			return fmt.Errorf("%d live bytes in a segment", l.Bytes)
		}
	}
	return nil
}

func (c *Checkpoint) soundTables(*Header) error {
	tables := map[rowid.Table]bool{}
	for _, t := range c.Tables {
		if g := t.Generation; tables[t.Table] || g.Number == 0 || g.Number > c.Number || g.Size < 0 {
			return fmt.Errorf("table %d, generation %d, %d bytes", t.Table, g.Number, g.Size)
		}
		tables[t.Table] = true
		for _, name := range t.Files {
			if name != arrayName(c.folderOf(name), t.Table) {
				return fmt.Errorf("%q is no array file of table %d", name, t.Table)
			}
		}
	}
	return nil
}

func (c *Checkpoint) soundIndexes(*Header) error {
	indexes := map[indexID]bool{}
	for _, x := range c.Indexes {
		id := indexID{x.Table, x.Index}
		if indexes[id] || x.Index < 0 || x.Index >= schema.MaxIndexes {
			return fmt.Errorf("index %d of table %d", x.Index, x.Table)
		}
		indexes[id] = true
		for _, f := range x.Files {
			if f.Size < 0 || f.Checkpoint == 0 || f.Checkpoint > c.Number {
				return fmt.Errorf("%q of checkpoint %d has %d bytes", f.Name, f.Checkpoint, f.Size)
			}
			if f.Name != indexFileName(f.Checkpoint, x.Table, x.Index, extension(f.Name)) {
				return fmt.Errorf("%q is no file of index %d of table %d", f.Name, x.Index, x.Table)
			}
		}
	}
	return nil
}

func (c *Checkpoint) soundSuspects(*Header) error {
	if s := c.Suspects; s != nil && (s.Name != suspectsFileName(c.Number) || s.Size < 0) {
		return fmt.Errorf("%q is no suspects file of checkpoint %d", s.Name, c.Number)
	}
	return nil
}

// folderOf returns the number of the checkpoint in whose folder a file lies, 0 if
// it is in none of this checkpoint or of those before.
func (c *Checkpoint) folderOf(name string) uint64 {
	n, ok := parseNumber(path.Base(path.Dir(name)))
	if !ok || n > c.Number {
		return 0
	}
	return n
}

// extension returns what a file name has behind its dot, if it is lower-case
// letters: then it can be part of a name.
func extension(name string) string {
	ext := path.Ext(name)
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' }
	if len(ext) < 2 || len(ext) > 16 || strings.TrimFunc(ext[1:], isLetter) != "" {
		return ""
	}
	return ext[1:]
}
