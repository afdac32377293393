package restart

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// DropCaches takes everything out of the page cache of the machine if this
// process may do that, else the files of the directory.
func DropCaches(dir string) error {
	if err := DropFiles(dir); err != nil {
		return err
	}
	err := dropMachine()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
		return nil // the files are done
	}
	return err
}

// DropFiles takes all files below a directory out of the page cache, where the
// system can do that (Linux).
func DropFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return dropFile(path)
	})
}

func dropFile(path string) (err error) {
	f, err := vfs.OS().Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil { // dirty pages stay
		return err
	}
	return f.DropCache()
}
