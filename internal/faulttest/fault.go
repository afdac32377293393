package faulttest

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// Kind is a way in which operations fail.
type Kind struct {
	Name string
	// Fails selects the operations that can fail in this way.
	Fails errorfs.Match
	// Err turns the injected error into what errorfs makes of it; it wraps it.
	Err func(op vfs.Op, err error) error
	// Cause is what the system says.
	Cause error
	// Effect is what happens to the medium besides, if not nil.
	Effect func(mem *vfs.Mem, name string) error
}

// Kinds returns all kinds of faults.
func Kinds() []Kind {
	syncs := errorfs.Kind(vfs.OpSync, vfs.OpDatasync, vfs.OpSyncDir)
	grows := errorfs.Kind(vfs.OpCreate, vfs.OpWriteAt, vfs.OpTruncate, vfs.OpMkdirAll, vfs.OpRename)
	moves := errorfs.Kind(vfs.OpReadAt, vfs.OpWriteAt)
	reads := errorfs.Kind(vfs.OpReadAt, vfs.OpSize, vfs.OpStat, vfs.OpList, vfs.OpMap)
	return []Kind{
		{Name: "before", Fails: errorfs.Always, Err: plain, Cause: syscall.EIO},
		{Name: "late", Fails: errorfs.Not(reads), Err: late, Cause: syscall.EIO}, // a read that has delivered everything has not failed
		{Name: "short", Fails: moves, Err: half, Cause: syscall.EIO},
		{Name: "full", Fails: grows, Err: plain, Cause: syscall.ENOSPC},
		{Name: "full, short", Fails: errorfs.Kind(vfs.OpWriteAt), Err: half, Cause: syscall.ENOSPC},
		{Name: "fsync, data kept", Fails: syncs, Err: plain, Cause: syscall.EIO, Effect: (*vfs.Mem).FailWriteback},
		{Name: "fsync, data dropped", Fails: syncs, Err: plain, Cause: syscall.EIO, Effect: (*vfs.Mem).DropUnsynced},
	}
}

func plain(_ vfs.Op, err error) error { return err }
func late(_ vfs.Op, err error) error  { return errorfs.Late(err) }

// half is an error after the first half.
func half(op vfs.Op, err error) error { return errorfs.Short(op.Size/2, err) }

// Error is one injected error.
type Error struct {
	Op    vfs.Op
	Seq   int // among those of one Disk, from 1
	Cause error
	Stack string // who met it
}

func (e *Error) Error() string { return fmt.Sprintf("%v (%s)", e.Cause, e.mark()) }

func (e *Error) Unwrap() error { return e.Cause }

// mark finds the error in a text.
func (e *Error) mark() string { return fmt.Sprintf("fault-%d;", e.Seq) }

// BestEffort reports whether an operation may fail in silence, because nothing
// that anybody has been promised depends on it:
//
//   - dropping and filling the cache;
//   - closing a file that was opened for reading only;
//   - reads of rows that are tried again at once: of those read ahead for a batch,
//     and of those that the collector looks at;
//   - reading ahead in the log behind what a scan is to deliver: what it is to
//     deliver and does not is a difference in content, which a test looks for;
//   - reads of a part of a log segment whose sectors are then read one by one;
//   - looking up in /sys and /proc what the system says of memory.
func BestEffort(e *Error) bool {
	switch e.Op.Kind {
	case vfs.OpDropCache, vfs.OpFillCache:
		return true
	case vfs.OpClose:
		return e.Op.ReadOnly
	case vfs.OpOpenRead, vfs.OpReadAt:
		if e.readAgain() {
			return true
		}
	}
	return strings.HasPrefix(e.Op.Path, "/sys/") || strings.HasPrefix(e.Op.Path, "/proc/")
}

// readAgain reports whether who met the error reads again what matters of it.
func (e *Error) readAgain() bool {
	if strings.Contains(e.Stack, "logstream.(*window).loadSectors(") {
		return false
	}
	for _, reader := range []string{"txn.(*ahead).", "gc.(*Collector).sweep(", "logstream.(*decoder).run(", "logstream.(*decoder).begin(", "logstream.(*window).load("} {
		if strings.Contains(e.Stack, reader) {
			return true
		}
	}
	return false
}

// harm has the effect of a kind on the medium. Directories have none.
func (k *Kind) harm(mem *vfs.Mem, op vfs.Op) error {
	if k.Effect == nil || op.Kind == vfs.OpSyncDir {
		return nil
	}
	if err := k.Effect(mem, op.Path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
