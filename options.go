package rekindle

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/rekindledb/rekindle/internal/cgroup"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
)

// Durability says what a commit waits for: Sync, None, or a duration, which
// makes a commit return when it is visible while a crash takes back at most the
// commits of that time. The zero value is Sync.
type Durability time.Duration

const (
	// Sync: a commit returns when it is on disk.
	Sync Durability = 0
	// None: a commit returns when it is visible. It is normally on disk some
	// 10 ms later, but nothing is promised.
	None Durability = -1
)

// invalid is the error for a negative time.
func (d Durability) invalid() error {
	return invalidOption("Durability is Interval(%v), negative", time.Duration(d))
}

// Interval is the durability that a crash may take the commits of the last d
// from. Interval(0) is Sync, a negative one is refused where it is used.
func Interval(d time.Duration) Durability { return Durability(d) }

func (d Durability) log() logstream.Durability {
	switch {
	case d == Sync:
		return logstream.Durability{Mode: logstream.Sync}
	case d == None:
		return logstream.Durability{Mode: logstream.None}
	}
	return logstream.Durability{Mode: logstream.Interval, Interval: time.Duration(d)}
}

// Options configure Open. The zero value, or nil, is a good choice for most
// uses. LogStreams, SegmentBytes and IndexStrategy are fixed when the database
// is created; later they are taken from the database if left zero and checked
// otherwise.
type Options struct {
	// ReadOnly opens without changing a single byte, also after a crash: the
	// log's tail is replayed in memory. It too excludes every other Open, with
	// ErrLocked, but for a directory that has no lock file, such as a copy: no such
	// file is made to look at it, so nothing keeps writers away meanwhile.
	ReadOnly bool
	// Durability of commits, Sync by default. A transaction may choose its own.
	Durability Durability
	// LogStreams is the number of log streams written in parallel, 1 by default.
	LogStreams int
	// SegmentBytes is the size of a log segment: a power of two, 16 MiB by
	// default. A row takes at most an eighth of it, and at most 1 MiB.
	SegmentBytes int64
	// CheckpointBytes is how much the log grows between two checkpoints, 64 MiB
	// by default. Negative: only Checkpoint and Close write one, and only Compact
	// compacts the log.
	CheckpointBytes int64
	// MemoryBudget is how many bytes of memory the engine should do with, for rows,
	// arrays and indexes, mapped files among them up to half of it. When they are used
	// up, rows that were not used lately leave memory and are read from the log, one
	// read each, until they are in demand again: when they are written, or read by key
	// twice in a short time (while half of the budget is free: once); scans do not
	// count. Checkpoints then make indexes of the strategy iacow give up what is in
	// their files; they come early if need be, unless CheckpointBytes is negative. Of
	// arrays, 8 bytes a row, those pages of 512 rows leave memory that have no row in
	// it and have not changed since the last checkpoint. It is a goal and no limit:
	// indexes of the other strategies stay (mirrorindex and rebuild keep all of an
	// index in memory, chainindex what the last checkpoint does not have), and rows
	// that were not committed durably or not before the oldest open transaction began.
	// 0 means half of the memory that the process may use: of the limit of its control
	// group on Linux, that is of its container, or of GOMEMLIMIT, whichever is
	// smaller; without either no budget. A negative number means no budget: rows come
	// into memory when they are first read, and stay.
	MemoryBudget int64
	// MemoryLimit bounds the memory for rows, arrays and indexes in bytes. A write
	// beyond it fails with ErrMemoryLimit, with a MemoryBudget only if no rows can
	// leave memory; reads never do. A sixteenth of it (with a small limit more, up to
	// a MiB) is kept for deletes, updates that make a row smaller, the removal of garbage,
	// checkpoints and the compaction of the log, so that there is a way back: they
	// fail only where that is used up too, as by one transaction that deletes very much.
	// Opening a database may take all of it, and fails with ErrMemoryLimit if it does not
	// suffice. 0 means no limit.
	MemoryLimit int64
	// IndexStrategy says how indexes come back after a restart: one of
	// IndexStrategies, of which the first is the default.
	IndexStrategy string
	// MaxRetries bounds how often Update runs a function again after a
	// conflict, 100 by default. Negative: never.
	MaxRetries int
	// MaxSnapshotAge is how old a transaction's snapshot may become. An older one
	// is ended: its changes are rolled back, its snapshot no longer holds back
	// old rows, and every further call of it, iterators included, returns
	// ErrSnapshotTooOld. That happens between two calls, never during one, and up
	// to a quarter later than said. It applies to CrossCheck too. 0 means no
	// limit.
	MaxSnapshotAge time.Duration
	// TraceTransactions notes where transactions begin, for DB.OpenTransactions
	// and for the error of a Close that had to end some. It costs about a
	// microsecond a transaction.
	TraceTransactions bool
	// VerifyOnOpen reads and checks every array and index file, and the header of
	// every log segment, before Open returns. Damage then has a substitute: an older checkpoint, a rebuilt
	// index. Without it, damage inside a file is found when that part is first
	// used: calls that need it return ErrCorrupt, those that need an index
	// ErrIndexDamaged until it has been rebuilt from the rows, which begins at
	// once.
	VerifyOnOpen bool
	// Logger gets warnings, such as damage found and worked around. Nil discards.
	Logger *slog.Logger
	// Progress, if set, is called now and then while Open works, from its
	// goroutine.
	Progress func(Progress)

	// For tests.
	fs          vfs.FS // nil = the operating system's
	eager       bool   // compact every log segment that can be, again and again
	uncompacted bool   // compact none by itself
}

// Progress says how far a phase of Open has come. Total is 0 if unknown.
type Progress struct {
	Phase string
	Done  int64
	Total int64
}

const (
	defaultCheckpointBytes = 64 << 20
	defaultMaxRetries      = 100
	maxRowBytes            = 1 << 20
	// maxCheckpointBytes stands for all that is more: no log gets there, and multiples
	// of it are no overflow.
	maxCheckpointBytes = 1 << 56
)

// in returns a copy with everything filled in that does not depend on the database
// in dir, and dir as it can be used for as long as the process lives: a relative
// one would mean another directory when the working directory changes.
func (o *Options) in(dir string) (_ Options, absolute string, err error) {
	var r Options
	if o != nil {
		r = *o
	}
	if dir == "" {
		return r, dir, invalidOption("the directory has no name")
	}
	if r.fs == nil {
		if dir, err = filepath.Abs(dir); err != nil {
			return r, dir, err
		}
		r.fs = vfs.Inside(dir)
	}
	r.fillIn()
	return r, dir, nil
}

func (r *Options) fillIn() {
	if r.CheckpointBytes == 0 {
		r.CheckpointBytes = defaultCheckpointBytes
	}
	r.CheckpointBytes = min(r.CheckpointBytes, maxCheckpointBytes)
	if r.MaxRetries == 0 {
		r.MaxRetries = defaultMaxRetries
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
}

// budget is the memory budget in bytes, 0 for none. To find the default takes some
// files of the kernel's.
func (o *Options) budget() int64 {
	if o.MemoryBudget == 0 {
		return defaultMemoryBudget(o.fs)
	}
	return max(0, o.MemoryBudget)
}

// defaultMemoryBudget leaves half of what the process may use to the Go heap, to
// indexes that outgrow the budget, and to the program around the database.
func defaultMemoryBudget(fs vfs.FS) int64 {
	limit := min(cgroup.MemoryLimit(fs), debug.SetMemoryLimit(-1)) // which only reads it
	if limit == cgroup.NoLimit {
		return 0
	}
	return limit / 2
}

// reserve is the part of the memory limit that is kept for what makes room and for
// checkpoints. With a small limit it is more than a sixteenth: a few spans of the
// arena for each of them.
func (o *Options) reserve() int64 {
	return max(o.MemoryLimit/16, min(o.MemoryLimit/4, 1<<20))
}

func (o *Options) validate() error {
	switch {
	case o.LogStreams < 0 || o.LogStreams > logstream.MaxStreams:
		return invalidOption("LogStreams is %d, not in [0, %d]", o.LogStreams, logstream.MaxStreams)
	case o.SegmentBytes != 0 && (o.SegmentBytes < logstream.MinSegmentBytes || o.SegmentBytes > logstream.MaxSegmentBytes || o.SegmentBytes&(o.SegmentBytes-1) != 0):
		return invalidOption("SegmentBytes is %d, not a power of two in [%d, %d]", o.SegmentBytes, logstream.MinSegmentBytes, logstream.MaxSegmentBytes)
	case o.Durability < None:
		return o.Durability.invalid()
	case o.MemoryLimit < 0:
		return invalidOption("MemoryLimit is %d, negative", o.MemoryLimit)
	case o.MaxSnapshotAge < 0:
		return invalidOption("MaxSnapshotAge is %v, negative", o.MaxSnapshotAge)
	}
	if o.IndexStrategy != "" {
		_, err := strategyNamed(o.IndexStrategy)
		return err
	}
	return nil
}

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", fault.ErrInvalidOptions, fmt.Sprintf(format, args...))
}
