package overhead

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/rekindledb/rekindle"
)

// Checkpoint is one that was timed.
type Checkpoint struct {
	Begin time.Duration // since the start of what it is part of
	Took  time.Duration
	Bytes int64 // of the files it wrote
	Index int64 // those of indexes
}

// End is when it was done.
func (c *Checkpoint) End() time.Duration { return c.Begin + c.Took }

// timedCheckpoint begins a checkpoint and looks at the files that are there
// afterwards and were not before: a checkpoint's files never change.
func timedCheckpoint(ctx context.Context, db *rekindle.DB, dir string, start time.Time) (c Checkpoint, err error) {
	before, err := checkpointFiles(dir)
	if err != nil {
		return c, err
	}
	c.Begin = time.Since(start)
	if err := db.Checkpoint(ctx); err != nil {
		return c, err
	}
	c.Took = time.Since(start) - c.Begin
	after, err := checkpointFiles(dir)
	if err != nil {
		return c, err
	}
	for path, size := range after {
		if _, old := before[path]; old {
			continue
		}
		c.Bytes += size
		if strings.HasPrefix(filepath.Base(path), "index") {
			c.Index += size
		}
	}
	return c, nil
}

// checkpointFiles returns the sizes of the files of all checkpoints.
func checkpointFiles(dir string) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := filepath.WalkDir(filepath.Join(dir, "ckpt"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // there was no checkpoint yet, or the file has just gone
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			sizes[path] = info.Size()
		}
		return err
	})
	return sizes, err
}
