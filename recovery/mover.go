package recovery

import (
	"context"
	"errors"
	"time"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

const (
	// moverBytes is about how much of records a frame of relocations holds: little
	// enough for the commits in its round not to notice.
	moverBytes      = 128 << 10
	moverBytesEager = 2 << 10
	// pressedBatches times as much it holds when the log is close to its bound:
	// every batch waits for a checkpoint that is under way, and under the load that
	// brings the log there one nearly always is.
	pressedBatches = 4
	// restFactor times as long as a batch has taken the mover rests after it,
	// unless the log is close to its bound.
	restFactor = 3
)

// mover re-appends the live rows of log segments, in batches:
//
//  1. Records are read in the order of the segment. One is live if the newest
//     committed version of its row has that address.
//  2. A frame with copies of them is appended and becomes durable.
//  3. Slots and versions that hold an old address get the new one.
//
// A checkpoint sees all of a batch or nothing, because both hold the
// checkpointer's lock: so its fold, which finds the frame in the log, and a scan
// of the slots give the same array. Whether a crash comes before or after the
// frame is durable, recovery finds each row at an address whose segment is there:
// the old segment goes after two checkpoints that do not name it.
type mover struct {
	*Checkpointer
	pressed func() bool // the log is close to its bound
	urgent  bool        // there is no space: the reserve of the log serves
	written int64       // bytes of records

	batch    []moving
	payloads []byte
	bytes    int            // of the batch's records
	read     []gc.SegmentID // to their ends; all rows of them that were live are moved or in the batch
}

// moving is a row under way.
type moving struct {
	table    *txn.Table
	row      rowid.ID
	schema   uint16
	origin   logstream.Origin
	from, to int // of the payload
	address  logstream.Address
}

// newMover returns the mover of a pass. That begins early, so it may come to press
// in the course of it.
func newMover(c *Checkpointer, pressing bool) *mover {
	return &mover{Checkpointer: c, pressed: func() bool { return pressing || c.Crowding() > 0 }}
}

// limit is how many bytes a batch may hold.
func (m *mover) limit() int {
	switch {
	case m.Eager:
		return moverBytesEager
	case m.pressed():
		return min(pressedBatches*moverBytes, m.Log.MaxFrame()/2)
	default:
		return min(moverBytes, m.Log.MaxFrame()/2)
	}
}

// empty moves all live rows of a segment, the last of them with the next flush:
// where segments hold a few live rows each, one flush serves many.
func (m *mover) empty(ctx context.Context, id gc.SegmentID) error {
	err := m.Log.ScanSegment(ctx, id.Stream, id.First, func(cts uint64, a logstream.Address, r logstream.Record) error {
		return m.see(ctx, cts, a, &r)
	})
	damaged := errors.Is(err, fault.ErrCorrupt)
	switch {
	case errors.Is(err, fault.ErrMissingFile): // a checkpoint has found it empty meanwhile
	case damaged: // what can be read is moved, the rest stays where it is
		m.logger.Error("log segment is damaged and not compacted", "error", err)
	case err != nil:
		return err
	}
	if !damaged {
		m.read = append(m.read, id)
		return nil
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	m.noteCompacted(id, never)
	return nil
}

// see puts a record into the batch if it is live.
func (m *mover) see(ctx context.Context, cts uint64, a logstream.Address, r *logstream.Record) error {
	t := m.Manager.Find(r.Row.Table())
	if t == nil || r.Kind == logstream.Delete {
		return nil
	}
	m.compaction.h.Pin()
	live, err := m.Manager.NeedsRecord(t, r.Row.Ordinal(), a)
	m.compaction.h.Unpin()
	if err != nil || !live {
		return err
	}
	size := logstream.RecordBytes(logstream.OriginBytes, len(r.Payload))
	if m.bytes+size > m.limit() {
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	if r.Kind == logstream.Relocation {
		cts = r.Origin().CTS
	}
	from := len(m.payloads)
	m.payloads = append(m.payloads, r.Payload...)
	m.batch = append(m.batch, moving{
		table: t, row: r.Row, schema: r.Schema,
		origin: logstream.Origin{CTS: cts, Address: a},
		from:   from, to: len(m.payloads),
	})
	m.bytes += size
	return nil
}

// flush moves the batch and rests.
func (m *mover) flush(ctx context.Context) error {
	took, err := m.move(ctx)
	m.batch, m.payloads, m.bytes = m.batch[:0], m.payloads[:0], 0
	if err != nil {
		return err
	}
	m.noteRead()
	if took == 0 || m.pressed() {
		return ctx.Err()
	}
	timer := time.NewTimer(restFactor * took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// noteRead notes the segments that nothing is left to do for.
func (m *mover) noteRead() {
	until := m.Log.Visible()
	for _, id := range m.read {
		m.noteCompacted(id, until)
	}
	m.read = m.read[:0]
}

// move moves the rows of the batch that have not changed meanwhile and returns how
// long that took once no checkpoint was in the way, 0 if there were none.
func (m *mover) move(ctx context.Context) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start := time.Now()
	defer m.hold()()
	if err := m.prepareBatch(); err != nil || len(m.batch) == 0 {
		return 0, err
	}
	ticket, err := m.append(ctx)
	if err != nil {
		return 0, err
	}
	// From here on the relocations may count after a crash, and for the next
	// checkpoint, so there is no way back.
	if err := m.Log.WaitDurable(context.WithoutCancel(ctx), ticket.Round); err != nil {
		return 0, err // the log has failed: there will be no other checkpoint
	}
	if err := m.apply(); err != nil {
		m.compaction.failed = err
		if invariants.Enabled {
			invariants.Fail("relocations are durable and not applied: %v", err)
		}
		return 0, err
	}
	m.compaction.rows.Add(int64(len(m.batch)))
	m.compaction.bytes.Add(int64(m.bytes))
	m.written += int64(m.bytes)
	return time.Since(start), nil
}

// hold keeps the pages in memory that prepareBatch brings there.
func (m *mover) hold() (release func()) {
	held := map[*txn.Table]func(){}
	for _, r := range m.batch {
		if held[r.table] == nil {
			held[r.table] = r.table.Rows.Hold()
		}
	}
	return func() {
		for _, release := range held {
			release()
		}
	}
}

// prepareBatch drops rows that have changed, and makes sure that apply cannot
// fail.
func (m *mover) prepareBatch() error {
	kept := m.batch[:0]
	m.bytes = 0
	for _, r := range m.batch {
		m.compaction.h.Pin()
		live, err := m.Manager.PrepareRelocation(m.compaction.h, r.table, r.row.Ordinal(), r.origin.Address)
		m.compaction.h.Unpin()
		if err != nil {
			return err
		}
		if live {
			kept = append(kept, r)
			m.bytes += logstream.RecordBytes(logstream.OriginBytes, r.to-r.from)
		}
	}
	m.batch = kept
	return nil
}

// append writes the batch as a frame of its own, into the stream that its first
// row comes from.
func (m *mover) append(ctx context.Context) (logstream.Ticket, error) {
	ticket, err := m.reserve(ctx)
	if err != nil {
		return ticket, err
	}
	enc := m.Log.Encode(&ticket)
	var keys [logstream.OriginBytes]byte
	for i := range m.batch {
		r := &m.batch[i]
		r.address = enc.Append(logstream.Relocation, r.row, r.schema, r.origin.AppendTo(keys[:0]), m.payloads[r.from:r.to])
	}
	enc.Finish()
	m.Log.Publish(ticket)
	return ticket, nil
}

// reserve takes a place in the log. Where there is no space for others, room for
// the rest of one segment comes from what is kept back for those who free space;
// deletes need it too.
func (m *mover) reserve(ctx context.Context) (logstream.Ticket, error) {
	r := logstream.Request{
		Shard:  uint32(m.batch[0].origin.Address.Stream()),
		Bytes:  logstream.FrameBytes(m.bytes),
		Urgent: m.urgent,
	}
	ticket, err := m.Log.Reserve(ctx, r)
	if errors.Is(err, fault.ErrNoSpace) && !m.urgent {
		m.urgent, r.Urgent = true, true
		ticket, err = m.Log.Reserve(ctx, r)
	}
	return ticket, err
}

// apply makes the new addresses known.
func (m *mover) apply() error {
	var errs []error
	for _, r := range m.batch {
		m.compaction.h.Pin()
		errs = append(errs, m.Manager.Relocate(m.compaction.h, r.table, r.row.Ordinal(), r.origin.Address, r.address))
		m.compaction.h.Unpin()
	}
	return errors.Join(errs...)
}
