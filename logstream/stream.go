package logstream

// Stream is one append-only sequence of rounds and the space for it. The log
// above it decides positions and order; a stream only keeps bytes. Rounds
// arrive complete and in order, so a stream that hands them to replicas may
// stand in for the one on segment files.
//
// Prepare, Begin and Remove have one caller at a time, and so have Append and
// Sync; the groups may run beside each other. The other methods may be called
// by anyone.
type Stream interface {
	// Prepare makes space ready for everything before target, at least, so
	// that writing there needs no allocation. An error that is
	// fault.ErrNoSpace leaves everything as it was and may be followed by
	// another try. After any other error the stream must not be written to.
	Prepare(target Position) error
	// Prepared is where the space that is ready ends.
	Prepared() Position
	// Begin starts an incarnation in the first prepared segment, which is
	// where the stream will go on. It is durable when Begin returns.
	Begin(life *incarnation) error
	// Append writes a round, padded to whole sectors, at a position behind
	// what was appended before. All of that is durable.
	Append(round []byte, p Position) error
	// Sync makes what was appended durable.
	Sync() error
	// ReadAt reads what there is of b at p, within the segment of p.
	ReadAt(b []byte, p Position) (int, error)
	// Segments lists what the stream holds, ascending, without space that was
	// only prepared.
	Segments() []Segment
	// Remove deletes a segment before the one that is appended to.
	Remove(first Position) error
	// Trim gives back the space behind what was appended. Only Close follows.
	Trim() error
	Close() error
}
