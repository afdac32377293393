package logstream

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// Mode says what Acknowledge waits for.
type Mode uint8

const (
	// Sync waits until the commit is durable.
	Sync Mode = iota
	// Interval waits until the commit is visible, and longer only while some
	// commit has been waiting for its flush for more than the interval.
	Interval
	// None waits until the commit is visible.
	None
)

func (m Mode) String() string {
	switch m {
	case Sync:
		return "sync"
	case Interval:
		return "interval"
	case None:
		return "none"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Durability is the promise that a database makes about acknowledged commits.
type Durability struct {
	Mode     Mode
	Interval time.Duration // of mode Interval: how much time a crash may take back
}

const (
	// DefaultSegmentBytes is the segment size when Options leave it open.
	DefaultSegmentBytes = 16 << 20
	// MinSegmentBytes is the smallest segment size.
	MinSegmentBytes = 64 << 10
	// MaxSegmentBytes is the largest segment size.
	MaxSegmentBytes = 1 << 30

	minUnflushed = 32 << 10
)

// Options describe a log. FS, Dir and DatabaseID are required.
type Options struct {
	FS         vfs.FS
	Dir        string   // the directory of the segment files, made when missing
	DatabaseID [16]byte // written into every segment, part of every checksum

	// Streams is how many streams are written in parallel, 1 by default and at
	// most MaxStreams. It is fixed for the life of the database.
	Streams int
	// SegmentBytes is the size of a segment, a power of two, fixed for the life
	// of the database. DefaultSegmentBytes if 0.
	SegmentBytes int64
	Durability   Durability
	// MaxUnflushed bounds the bytes a stream holds that are not durable:
	// MaxRoundBytes if 0, and never more than that.
	MaxUnflushed int
	Logger       *slog.Logger // may be nil
}

func (o Options) withDefaults() Options {
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.MaxUnflushed == 0 {
		o.MaxUnflushed = MaxRoundBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	switch {
	case o.FS == nil:
		return fmt.Errorf("%w: log without a file system", fault.ErrInvalidOptions)
	case o.MaxUnflushed < minUnflushed || o.MaxUnflushed > MaxRoundBytes:
		return fmt.Errorf("%w: MaxUnflushed %d is not in [%d, %d]", fault.ErrInvalidOptions, o.MaxUnflushed, minUnflushed, MaxRoundBytes)
	case o.Durability.Mode > None:
		return fmt.Errorf("%w: durability %v", fault.ErrInvalidOptions, o.Durability.Mode)
	case o.Durability.Mode == Interval && o.Durability.Interval <= 0:
		return fmt.Errorf("%w: durability interval %v", fault.ErrInvalidOptions, o.Durability.Interval)
	}
	return o.geometry().validate()
}
