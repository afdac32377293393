package vfs

import (
	"errors"
	"io"
	"io/fs"
)

var (
	errNotRegular     = errors.New("not a regular file")
	errNegativeOffset = errors.New("negative offset or size")
)

// pathError adds operation and path to err; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
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
