package rekindle

import (
	"context"

	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/txn"
)

// Relocation is the relocation of one row in single steps, so that a test can do
// something between them.
type Relocation struct {
	db       *DB
	h        *epoch.Handle
	table    *txn.Table
	record   logstream.Record
	from, to logstream.Address
}

// NewRelocation finds the record of the newest committed version of a row, the
// only one of its table. There is a row.
func NewRelocation(db *DB, table string) (*Relocation, error) {
	r := &Relocation{db: db, h: db.epochs.Register(), table: db.catalog.set.Load().byName[table]}
	for _, s := range db.log.Segments() {
		err := db.log.ScanSegment(context.Background(), s.Stream, s.First, func(cts uint64, a logstream.Address, record logstream.Record) error {
			if record.Row.Table() != r.table.ID || record.Kind == logstream.Delete {
				return nil
			}
			r.h.Pin()
			defer r.h.Unpin()
			needed, err := db.manager.NeedsRecord(r.table, record.Row.Ordinal(), a)
			if needed {
				r.from, r.record = a, record
				r.record.Payload = append([]byte(nil), record.Payload...)
				r.record.Keys = logstream.Origin{CTS: cts, Address: a}.AppendTo(nil)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Append writes the record again and waits until that is durable.
func (r *Relocation) Append() error {
	ctx := context.Background()
	if _, err := r.needed(); err != nil {
		return err
	}
	t, err := r.db.log.Reserve(ctx, logstream.Request{Bytes: logstream.FrameBytes(logstream.RecordBytes(logstream.OriginBytes, len(r.record.Payload)))})
	if err != nil {
		return err
	}
	enc := r.db.log.Encode(&t)
	r.to = enc.Append(logstream.Relocation, r.record.Row, r.record.Schema, r.record.Keys, r.record.Payload)
	enc.Finish()
	r.db.log.Publish(t)
	return r.db.log.WaitDurable(ctx, t.Round)
}

func (r *Relocation) needed() (bool, error) {
	r.h.Pin()
	defer r.h.Unpin()
	return r.db.manager.PrepareRelocation(r.h, r.table, r.record.Row.Ordinal(), r.from)
}

// Apply makes the new address known.
func (r *Relocation) Apply() error {
	r.h.Pin()
	defer r.h.Unpin()
	return r.db.manager.Relocate(r.h, r.table, r.record.Row.Ordinal(), r.from, r.to)
}

// Dead reports whether the old address is in the way of nobody: no snapshot from
// now on reads there, and no checkpoint will name it.
func (r *Relocation) Dead() (bool, error) {
	r.h.Pin()
	defer r.h.Unpin()
	word, err := r.table.Rows.Load(r.record.Row.Ordinal())
	if err != nil {
		return false, err
	}
	for cts := range r.db.log.Visible() + 1 {
		if cts >= r.db.log.Durable() && r.db.manager.AddressAt(word, cts) == r.from {
			return false, nil
		}
	}
	return true, nil
}
