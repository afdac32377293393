// Package fault is the one place where the errors of Rekindle are defined.
//
// Every layer returns these; the root package re-exports them. A sentinel
// answers "what kind" through errors.Is at any depth of wrapping; a typed
// error adds the table, key, file or offset and is reached with errors.As.
// Each typed error unwraps to its sentinel.
package fault

import (
	"errors"
	"fmt"
)

// Sentinels. The root package documents the ones that reach users.
var (
	ErrClosed            = errors.New("database is closed")
	ErrTxDone            = errors.New("transaction has ended")
	ErrTxBusy            = errors.New("transaction is in use by another goroutine")
	ErrTxReadOnly        = errors.New("transaction is read-only")
	ErrReadOnly          = errors.New("database is read-only")
	ErrConflict          = errors.New("write-write conflict")
	ErrDuplicateKey      = errors.New("duplicate key")
	ErrNotFound          = errors.New("not found")
	ErrKeyTooLarge       = errors.New("key too large")
	ErrRowTooLarge       = errors.New("row too large")
	ErrSchema            = errors.New("invalid schema")
	ErrSchemaMismatch    = errors.New("schema does not match the stored table")
	ErrInvalidQuery      = errors.New("invalid query")
	ErrForeignTable      = errors.New("table belongs to another database")
	ErrInvalidOptions    = errors.New("invalid options")
	ErrLocked            = errors.New("database is locked by another opener")
	ErrFormat            = errors.New("unsupported file format")
	ErrCorrupt           = errors.New("corrupt file")
	ErrForeignFile       = errors.New("file belongs to another database")
	ErrMissingFile       = errors.New("required file is missing")
	ErrIndexDamaged      = errors.New("index is damaged and is being rebuilt")
	ErrNoSpace           = errors.New("no space prepared for the log")
	ErrMemoryLimit       = errors.New("memory limit reached")
	ErrCommitUnknown     = errors.New("commit outcome is unknown")
	ErrSnapshotTooOld    = errors.New("snapshot is too old")
	ErrCheckpointStalled = errors.New("checkpoints keep failing and the log tail is at its limit")
	ErrOpenTransactions  = errors.New("transactions were still open")
)

// place names a table or, if there is one to name, its index.
func place(table, index string) string {
	if index == "" {
		return table
	}
	return table + "." + index
}

// Conflict is a write-write conflict: another transaction got there first.
type Conflict struct {
	Table  string
	Key    string // human-readable primary key, or the key of Index
	Index  string // set when a unique index was the place of the conflict
	Reason string
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("%v: table %s, key %s: %s", ErrConflict, place(e.Table, e.Index), e.Key, e.Reason)
}

func (e *Conflict) Unwrap() error { return ErrConflict }

// DuplicateKey says that a unique key is taken.
type DuplicateKey struct {
	Table string
	Index string
	Key   string
}

func (e *DuplicateKey) Error() string {
	return fmt.Sprintf("%v: table %s, index %s, key %s", ErrDuplicateKey, e.Table, e.Index, e.Key)
}

func (e *DuplicateKey) Unwrap() error { return ErrDuplicateKey }

// NotFound says that no row with the key is visible, or no such table.
type NotFound struct {
	Table string
	Key   string // primary key, or the key of Index; empty when the table itself is missing
	Index string // set when the row was looked up by a unique index
}

func (e *NotFound) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("table %s: %v", e.Table, ErrNotFound)
	}
	return fmt.Sprintf("table %s, key %s: %v", place(e.Table, e.Index), e.Key, ErrNotFound)
}

func (e *NotFound) Unwrap() error { return ErrNotFound }

// TooLarge says that a key or a row passes its limit. Kind is ErrKeyTooLarge
// or ErrRowTooLarge; sizes are in bytes.
type TooLarge struct {
	Kind  error
	Table string
	Index string
	Size  int
	Limit int
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%v: table %s: %d bytes, limit %d", e.Kind, place(e.Table, e.Index), e.Size, e.Limit)
}

func (e *TooLarge) Unwrap() error { return e.Kind }

// Schema describes a wrong table definition, struct tag or column value.
// Kind is ErrSchema or ErrSchemaMismatch.
type Schema struct {
	Kind   error
	Table  string
	Column string
	Reason string
}

func (e *Schema) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("%v: table %s: %s", e.Kind, e.Table, e.Reason)
	}
	return fmt.Sprintf("%v: table %s, column %s: %s", e.Kind, e.Table, e.Column, e.Reason)
}

func (e *Schema) Unwrap() error { return e.Kind }

// File describes what is wrong with a file. Kind is ErrCorrupt, ErrFormat,
// ErrForeignFile or ErrMissingFile. Offset and Length bound the damaged part
// in bytes; Length 0 means that the extent is unknown or the whole file.
type File struct {
	Kind   error
	Path   string
	Offset int64
	Length int64
	Reason string
}

func (e *File) Error() string {
	if e.Offset == 0 && e.Length == 0 {
		return fmt.Sprintf("%v: %s: %s", e.Kind, e.Path, e.Reason)
	}
	return fmt.Sprintf("%v: %s at offset %d, %d bytes: %s", e.Kind, e.Path, e.Offset, e.Length, e.Reason)
}

func (e *File) Unwrap() error { return e.Kind }

// Read says that a row could not be read from the log. It unwraps to the cause:
// a File error for damage, else that of the file system.
type Read struct {
	Table  string
	Row    uint64 // its number within the table
	Path   string // of the segment
	Offset int64  // of the record in it
	Err    error
}

func (e *Read) Error() string {
	return fmt.Sprintf("table %s, row %d, at offset %d of %s: %v", e.Table, e.Row, e.Offset, e.Path, e.Err)
}

func (e *Read) Unwrap() error { return e.Err }

// Corrupt builds the File error for damage at [offset, offset+length).
func Corrupt(path string, offset, length int64, format string, args ...any) error {
	return &File{Kind: ErrCorrupt, Path: path, Offset: offset, Length: length, Reason: fmt.Sprintf(format, args...)}
}
