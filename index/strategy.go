package index

import (
	"context"
	"errors"
	"log/slog"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// These two stay between an index and the engine and never reach users.
var (
	// ErrNoCheckpoint is returned by Strategy.Open when there is nothing to
	// open an index from: the strategy keeps no files, or no file was named.
	// The engine builds the index by scanning the table.
	ErrNoCheckpoint = errors.New("index has no checkpoint to open")
	// ErrOrder is returned by Builder.Add for an entry below its predecessor.
	ErrOrder = errors.New("index entries do not ascend")
)

// Strategy makes the indexes of a database and opens them after a restart. It
// has no state of its own.
type Strategy interface {
	// Name is the stable name that the database stores: "rebuild", "iacow", …
	Name() string
	// Persistent says whether the indexes are Checkpointers. False means that
	// every open scans the tables and builds the indexes anew.
	Persistent() bool
	// Create makes an empty index.
	Create(spec Spec) (Index, error)
	// NewBuilder begins an index that is loaded in ascending order.
	NewBuilder(spec Spec) (Builder, error)
	// Open makes the index that a published checkpoint described by files. It
	// maps them and changes no byte of them; its cost does not grow with the
	// number of entries. Errors: ErrNoCheckpoint; *fault.File for what cannot
	// be used, whereupon the engine falls back or rebuilds.
	Open(ctx context.Context, spec Spec, files []FileInfo) (Index, error)
}

// Spec says which index is meant and lends it the parts it is made of. Arena,
// Domain, FS and Logger outlive the index.
type Spec struct {
	Table      rowid.Table // of every row in the index
	Number     int         // place of the index in its table's list; with Table the identity stored in files
	Name       string      // "table.index", for errors and log lines
	DatabaseID [16]byte    // stored in files and checked when they are opened

	Arena  *arena.Arena
	Domain *epoch.Domain
	FS     vfs.FS
	Logger *slog.Logger // never nil

	// Recovered is closed when the recovery that opens the index has ended, which
	// must not lack memory for what an index only makes to be quicker. nil = it has.
	Recovered <-chan struct{}
}

// FileInfo names a file of an index checkpoint as the manifest records it.
type FileInfo struct {
	Name       string // as Spec.FS knows it
	Size       int64  // bytes
	Sum        uint64 // xxhash64 of the whole file
	Checkpoint uint64 // number of the checkpoint that wrote it
}

// Checkpointer is implemented by the indexes of a persistent strategy.
type Checkpointer interface {
	// BeginCheckpoint draws the line of checkpoint n: what was entered before
	// is captured, what comes later need not be. It waits for no more than the
	// index operations in flight. One capture is open at a time; numbers ascend.
	BeginCheckpoint(ctx context.Context, n uint64) (Capture, error)
}

// Shrinker is implemented by indexes that keep memory which they could do without.
type Shrinker interface {
	// Shrink gives memory back that was kept for later. With demote it also gives
	// up copies in memory of what the last published checkpoint has in files, which
	// makes the index slower where they are used again. Not while a capture is open.
	Shrink(ctx context.Context, demote bool) error
}

// Capture is one index's part of a checkpoint under way. It ends by exactly
// one call of Published or Abandon, also when Write failed or never ran.
type Capture interface {
	// Write puts the captured entries into files made by create, flushed,
	// synced and closed, and returns all files that the index needs to be opened at this
	// checkpoint, older ones included. Create takes a file extension without
	// the dot, each at most once, and leaves naming to the engine. What the
	// files hold is fuzzy: at least the entries at the line that were not
	// removed since, perhaps later ones.
	Write(ctx context.Context, create func(ext string) (vfs.File, error)) ([]FileInfo, error)
	// Published says that the manifest record naming the files is durable:
	// later checkpoints may build on them.
	Published()
	// Abandon says that it never will be: the index goes on as if the
	// checkpoint had not begun, and files written for it are deleted by the
	// engine.
	Abandon()
}
