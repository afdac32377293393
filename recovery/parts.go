package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/txn"
)

// writeIndexes writes the index part, for strategies that have one.
func (d *draft) writeIndexes(ctx context.Context) error {
	for _, t := range d.Engine.Tables() {
		for number, ix := range t.Indexes {
			c, ok := ix.(index.Checkpointer)
			if !ok {
				continue
			}
			if err := d.writeIndex(ctx, t, number, c); err != nil {
				return fmt.Errorf("index %s.%s: %w", t.Name(), t.Schema.Indexes[number].Name, err)
			}
		}
	}
	return nil
}

func (d *draft) writeIndex(ctx context.Context, t *txn.Table, number int, c index.Checkpointer) error {
	capture, err := c.BeginCheckpoint(ctx, d.Number)
	if err != nil {
		return err
	}
	d.captures = append(d.captures, capture)
	files, err := capture.Write(ctx, func(ext string) (vfs.File, error) {
		return d.files.Create(d.path(indexFileName(d.Number, t.ID, number, ext)))
	})
	if err != nil {
		return err
	}
	for i := range files {
		name, err := filepath.Rel(d.dir, files[i].Name)
		if err != nil {
			return err
		}
		files[i].Name = filepath.ToSlash(name)
		if files[i].Checkpoint == d.Number {
			d.bytes += files[i].Size
		}
	}
	d.Indexes = append(d.Indexes, IndexFiles{t.ID, number, files})
	return nil
}

// writeSuspects saves what waits for removal from the indexes, or would have
// to after a crash.
func (d *draft) writeSuspects(list *suspectList) error {
	if list.count == 0 || !d.persistent {
		return nil
	}
	name := suspectsFileName(d.Number)
	f, err := d.files.Create(d.path(name))
	if err != nil {
		return err
	}
	w := vfs.NewPacedWriter(f, 0)
	_, err = w.Write(list.finish(d.header.DatabaseID))
	if err == nil {
		err = w.Finish()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	d.Suspects = &FileInfo{Name: name, Size: w.Size(), Sum: w.Sum64()}
	d.bytes += w.Size()
	return nil
}

// letGo deletes the log segments and files that no kept checkpoint needs.
func (c *Checkpointer) letGo(ctx context.Context) error {
	kept := c.needs()
	for _, p := range c.pinned { // of the kept ones, once, so they never are too few because of them
		kept = append(kept, needs(p))
	}
	errs := []error{c.removeSegments(ctx, kept)}
	existing, err := c.checkpointFiles()
	errs = append(errs, err) // what could be listed can go
	for _, name := range gc.Files(existing, kept) {
		errs = append(errs, c.remove(name))
	}
	return errors.Join(append(errs, c.removeOldManifests())...)
}

// removeSegments deletes log segments. Who was pinned when rows were moved out of
// them may still be about to put an old address into a slot, and to correct that.
func (c *Checkpointer) removeSegments(ctx context.Context, kept []gc.Kept) error {
	if c.compaction.failed != nil { // then rows may be in segments that no checkpoint counts them in
		return c.compaction.failed
	}
	free := gc.Segments(c.Log.Segments(), kept)
	if len(free) == 0 {
		return nil
	}
	if err := c.Manager.Epochs.Barrier(ctx); err != nil {
		return err
	}
	var errs []error
	for _, s := range free {
		err := c.Log.RemoveSegment(s.Stream, s.First)
		if err == nil {
			c.compaction.freed.Add(1)
			delete(c.compaction.done, s)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// needs lists what each kept checkpoint needs, the newest last.
func (c *Checkpointer) needs() []gc.Kept {
	kept := make([]gc.Kept, len(c.kept))
	for i := range c.kept {
		kept[i] = needs(&c.kept[i])
	}
	return kept
}

// needs lists what a checkpoint must find to be usable.
func needs(c *Checkpoint) gc.Kept {
	k := gc.Kept{Replay: c.Replay, Live: liveBytes(c), Files: map[string]bool{recordFileName(c.Number): true}}
	for _, t := range c.Tables {
		for _, name := range t.Files {
			k.Files[name] = true
		}
	}
	for _, x := range c.Indexes {
		for _, f := range x.Files {
			k.Files[f.Name] = true
		}
	}
	if c.Suspects != nil {
		k.Files[c.Suspects.Name] = true
	}
	return k
}

// checkpointFiles lists all files in the folders of checkpoints, relative to the
// database. What else lies beside those folders is not the engine's, and one that
// cannot be listed does not keep the others from it.
func (c *Checkpointer) checkpointFiles() ([]string, error) {
	folders, err := c.files.List(c.path(checkpointDir))
	if err != nil {
		return nil, err
	}
	var all []string
	var errs []error
	for _, text := range folders {
		number, ok := parseNumber(text)
		if !ok {
			continue
		}
		names, err := c.files.List(c.path(folderName(number)))
		errs = append(errs, err)
		for _, name := range names {
			all = append(all, path.Join(folderName(number), name))
		}
	}
	return all, errors.Join(errs...)
}

// remove deletes a checkpoint file, and its folder with the last one.
func (c *Checkpointer) remove(name string) error {
	if err := c.files.Remove(c.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := c.path(path.Dir(name))
	if left, err := c.files.List(folder); err != nil || len(left) > 0 {
		return err
	}
	return c.files.Remove(folder)
}

func (c *Checkpointer) removeOldManifests() error {
	names, err := c.files.List(c.dir)
	errs := []error{err}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, manifestPrefix)
		if number, isNumber := parseNumber(digits); ok && isNumber && number != c.manifest.number {
			errs = append(errs, c.files.Remove(filepath.Join(c.dir, name)))
		}
	}
	return errors.Join(errs...)
}
