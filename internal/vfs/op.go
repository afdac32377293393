package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Kind is the kind of an operation.
type Kind uint8

// The kinds, named after the methods of FS and File. OpClose is the end of a
// file or of a lock.
const (
	OpCreate Kind = iota
	OpOpen
	OpOpenRead
	OpMap
	OpRemove
	OpRename
	OpMkdirAll
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpReadAt
	OpWriteAt
	OpClose
	OpSize
	OpTruncate
	OpSync
	OpDatasync
	OpDropCache
	OpFillCache
)

var kindNames = [...]string{
	OpCreate:    "create",
	OpOpen:      "open",
	OpOpenRead:  "open-read",
	OpMap:       "map",
	OpRemove:    "remove",
	OpRename:    "rename",
	OpMkdirAll:  "mkdir-all",
	OpList:      "list",
	OpStat:      "stat",
	OpSyncDir:   "sync-dir",
	OpLock:      "lock",
	OpReadAt:    "read",
	OpWriteAt:   "write",
	OpClose:     "close",
	OpSize:      "size",
	OpTruncate:  "truncate",
	OpSync:      "sync",
	OpDatasync:  "datasync",
	OpDropCache: "drop-cache",
	OpFillCache: "fill-cache",
}

func (k Kind) String() string { return kindNames[k] }

// Mutates reports whether operations of the kind change content or entries, or
// what of them is durable. Mem counts these and calls its hook for them.
func (k Kind) Mutates() bool {
	switch k {
	case OpCreate, OpRemove, OpRename, OpMkdirAll, OpSyncDir, OpWriteAt, OpTruncate, OpSync, OpDatasync:
		return true
	}
	return false
}

// Op describes one operation.
type Op struct {
	Kind   Kind
	Path   string // the name as given to the method, for a file the one it was opened with
	To     string // the new name of OpRename
	Offset int64  // of OpReadAt and OpWriteAt, in bytes
	Size   int64  // bytes asked for in OpReadAt and OpWriteAt, the new size in OpTruncate
	Err    error  // the outcome, where the operation has already run

	ReadOnly bool // of a file that was opened by OpenRead; known to Wrap
}

// String gives one line for transcripts: kind, path, arguments, and the error
// without the paths that it repeats.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s", o.Kind, o.Path)
	switch o.Kind {
	case OpRename:
		fmt.Fprintf(&b, " -> %s", o.To)
	case OpReadAt, OpWriteAt:
		fmt.Fprintf(&b, " [%d,+%d)", o.Offset, o.Size)
	case OpTruncate:
		fmt.Fprintf(&b, " %d", o.Size)
	}
	if o.Err != nil {
		fmt.Fprintf(&b, ": %v", withoutPath(o.Err))
	}
	return b.String()
}

// Fail adds the operation and its paths to err; nil stays nil.
func (o Op) Fail(err error) error {
	if err != nil && o.Kind == OpRename {
		return &os.LinkError{Op: o.Kind.String(), Old: o.Path, New: o.To, Err: err}
	}
	return pathError(o.Kind.String(), o.Path, err)
}

// withoutPath strips the outer layers of err that only name the operation.
func withoutPath(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
