package vfs

import (
	"errors"
	"io"
	"io/fs"

	"github.com/rekindledb/rekindle/internal/fault"
)

var errNegativeOffset = errors.New("negative offset or size")

// notRegular says that something else has the name of a file.
func notRegular(name string) error {
	return &fault.File{Kind: fault.ErrCorrupt, Path: name, Reason: "not a regular file"}
}

// notDirectory says that something else has the name of a directory.
func notDirectory(name string) error {
	return &fault.File{Kind: fault.ErrCorrupt, Path: name, Reason: "not a directory"}
}

// pathError adds operation and path to err; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// checkSize refuses a file that has another size than its user knows it by.
func checkSize(name string, size, want int64) error {
	if size == want {
		return nil
	}
	return fault.Corrupt(name, 0, size, "file has %d bytes, should have %d", size, want)
}

// joinErrors is errors.Join that leaves a single error as it is, so that it
// can still be compared with io.EOF.
func joinErrors(err, other error) error {
	switch {
	case other == nil:
		return err
	case err == nil:
		return other
	}
	return errors.Join(err, other)
}

// closeInto closes c and joins its error to *err.
func closeInto(c io.Closer, err *error) { *err = joinErrors(*err, c.Close()) }
