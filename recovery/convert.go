package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// Convert gives a database that is not open another index strategy. The new
// manifest names no index files, so the next Open builds the indexes by reading
// all rows, and the next checkpoint writes them in the new form. Rows, log and
// arrays are untouched, and a crash leaves the old strategy or the new one.
func Convert(files vfs.FS, dir, strategy string) (err error) {
	s := &State{cfg: Config{FS: files, Dir: dir}}
	switch _, err := files.Stat(s.path(currentName)); {
	case errors.Is(err, fs.ErrNotExist): // no lock file is made then
		return &fault.File{Kind: fault.ErrMissingFile, Path: s.path(currentName), Reason: "there is no database to convert"}
	case err != nil:
		return fmt.Errorf("convert %s: %w", dir, err)
	}
	lock, err := files.Lock(s.path(lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	m, err := readManifest(files, dir, allRecords)
	if err != nil {
		return fmt.Errorf("convert %s: %w", dir, err)
	}
	if m.Strategy == strategy {
		return nil
	}
	m.Header.Strategy = strategy
	kept := slices.Clone(m.Checkpoints[max(0, len(m.Checkpoints)-gc.KeptCheckpoints):])
	for i := range kept {
		kept[i].Indexes, kept[i].Suspects = nil, nil
	}
	w := manifestWriter{files: files, dir: dir, header: m.Header, number: m.Number}
	return errors.Join(w.begin(kept), w.close())
}
