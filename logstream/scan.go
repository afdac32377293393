package logstream

import (
	"context"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// ScanOptions say what to scan.
type ScanOptions struct {
	FS           vfs.FS
	Dir          string
	DatabaseID   [16]byte
	Streams      int
	SegmentBytes int64

	From       []Position // Mark.Replay of the checkpoint; nil = the beginning
	Proven     []Position // Mark.Ends of the checkpoint, if known
	AfterCTS   uint64     // Mark.CTS: groups up to here are skipped
	AfterRound uint64     // Mark.Round

	// UntilRound ends the scan after this durable round of a live log. 0 means
	// to the end of a log that nobody writes to.
	UntilRound uint64
	Progress   func(done, total int64)
}

// Group is a committed transaction with all its parts.
type Group struct {
	CTS   uint64 // of its last part, which is the commit
	Round uint64
}

// Records calls fn for each record in the order of the transaction.
func (g *Group) Records(fn func(Address, Record) error) error { return errSkeleton }

// Tail is where the log ends.
type Tail struct {
	Start
	Proven  []Position // durable for sure
	Dropped int64      // bytes behind the end that are not part of the log
	Reason  string
}

// Scan delivers the committed groups in CTS order.
func Scan(ctx context.Context, o ScanOptions, fn func(*Group) error) (Tail, error) {
	return Tail{}, errSkeleton
}

// Secure makes what Scan accepted durable.
func Secure(o Options, t Tail) error { return errSkeleton }
