package logstream

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle/rowid"
)

var errSkeleton = errors.New("logstream: being built")

// Start is where a log goes on: the zero value in a new database, otherwise
// what Scan found.
type Start struct {
	NextCTS     uint64
	NextRound   uint64
	Incarnation uint64 // the newest one seen, 0 if none
	Salt        uint64 // of that incarnation
	Ends        []Position
	Segments    []Segment
}

// Segment is one file of a stream. It holds the positions [First, End).
type Segment struct {
	Stream int
	First  Position
	End    Position
}

// Validator is the last check before a commit. Validate runs under the commit
// latch with the CTS that the transaction gets if it returns nil.
type Validator interface {
	Validate(cts uint64) error
}

// Request asks for room in the log.
type Request struct {
	Shard uint32 // any number; the same shard uses the same stream
	Bytes int    // FrameBytes of the records
	// Parts > 1 makes the frame part Part (from 1) of a group that takes
	// effect with its last part. First is the CTS of part 1, and 0 in part 1.
	First       uint64
	Part, Parts int
	Urgent      bool // frees space: may use the reserve
	Validate    Validator
}

// Ticket is a place in the commit order and in the log. Its frame must be
// encoded and published, whatever happens.
type Ticket struct {
	CTS, Round  uint64
	Stream      int
	Pos         Position
	Buf         []byte // the frame; valid until Publish
	first       uint64
	part, parts uint32
}

// Mark is a point of the log up to which everything is durable.
type Mark struct {
	Round  uint64
	CTS    uint64     // the last one of Round
	Replay []Position // where replaying what is newer than CTS begins
	Ends   []Position // where Round ends
}

// Log is the log of an open database.
type Log struct{ visible, durable uint64 }

// Open prepares to append behind start. It changes no file.
func Open(o Options, start Start) (*Log, error) { return nil, errSkeleton }

// Reserve gives a frame its place: CTS, round and position.
func (l *Log) Reserve(ctx context.Context, r Request) (Ticket, error) { return Ticket{}, errSkeleton }

// Encoder writes the records of one frame.
type Encoder struct{}

// Encode starts the frame of a ticket.
func (l *Log) Encode(t *Ticket) Encoder { return Encoder{} }

// Append adds a record.
func (e *Encoder) Append(kind Kind, row rowid.ID, schema uint16, keys, payload []byte) Address {
	return 0
}

// Finish completes the frame.
func (e *Encoder) Finish() {}

// Publish says that the frame is encoded and its versions are stamped.
func (l *Log) Publish(t Ticket) {}

// Visible is the newest CTS up to which all commits are published.
func (l *Log) Visible() uint64 { return l.visible }

// Durable is the newest CTS up to which all commits survive a crash.
func (l *Log) Durable() uint64 { return l.durable }

// WaitVisible returns when cts is visible.
func (l *Log) WaitVisible(cts uint64) {}

// WaitDurable returns when round is durable.
func (l *Log) WaitDurable(ctx context.Context, round uint64) error { return errSkeleton }

// Acknowledge waits for what a commit promises.
func (l *Log) Acknowledge(ctx context.Context, t Ticket, sync bool) error { return errSkeleton }

// AbandonGroup gives up a group whose last part was not reserved.
func (l *Log) AbandonGroup(first uint64) {}

// Mark returns the newest durable point.
func (l *Log) Mark(ctx context.Context) (Mark, error) { return Mark{}, errSkeleton }

// Flush makes everything durable that was reserved before the call.
func (l *Log) Flush(ctx context.Context) error { return errSkeleton }

// Failed is the error that made the log read-only, or nil.
func (l *Log) Failed() error { return nil }

// Close flushes and ends the log.
func (l *Log) Close(ctx context.Context) error { return errSkeleton }

// ReadAt reads the record at a durable address into buf.
func (l *Log) ReadAt(a Address, buf []byte) (Record, []byte, error) {
	return Record{}, buf, errSkeleton
}

// Segments lists the segment files.
func (l *Log) Segments() []Segment { return nil }

// RemoveSegment deletes a segment file.
func (l *Log) RemoveSegment(stream int, first Position) error { return errSkeleton }

// MaxFrame is the largest Request.Bytes.
func (l *Log) MaxFrame() int { return 0 }
