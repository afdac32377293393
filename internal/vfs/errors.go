package vfs

import "io/fs"

// pathError adds operation and path to err; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
