package rekindle

import (
	"context"
	"encoding/json"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/recovery"
	"github.com/rekindledb/rekindle/rowid"
)

// OnFS returns options that put the database on another file system.
func (o Options) OnFS(fs vfs.FS) *Options {
	o.fs = fs
	return &o
}

// Eager returns options with which every log segment that can be is compacted,
// again and again.
func (o Options) Eager() Options {
	o.eager = true
	return o
}

// Budget is the memory budget of a database with these options.
func (o Options) Budget() int64 {
	o, _, err := o.in("/db")
	if err != nil {
		panic(err)
	}
	return o.budget()
}

// Uncompacted returns options with which the log is not compacted.
func (o Options) Uncompacted() Options {
	o.uncompacted = true
	return o
}

// FreezerRounds is how often the freezer has begun to look at all rows.
func (db *DB) FreezerRounds() uint64 { return db.freezer.Rounds() }

// CrowdedPause is how long writers wait for a compaction that is far behind.
const CrowdedPause = crowdedPause

// Crowding says how far the log is beyond its bound, as writers see it.
func (db *DB) Crowding() float64 { return db.checkpointer.Crowding() }

// TailCrowding says how far the log's tail is too long, as writers see it.
func (db *DB) TailCrowding() float64 { return db.tailCrowding() }

// ScanEntries counts the entries of all indexes by reading them. Stats cannot tell
// those of a chain of trees that are there twice.
func (db *DB) ScanEntries() (n int64, err error) {
	h := db.epochs.Register()
	h.Pin()
	defer h.Unpin()
	for _, t := range db.catalog.tables() {
		for _, ix := range t.Indexes {
			var c index.Cursor
			var b index.Batch
			for more := true; more; {
				if more, err = ix.Scan(h, index.Range{}, &c, &b); err != nil {
					return n, err
				}
				n += int64(b.Len())
			}
		}
	}
	return n, nil
}

// ManifestRecord frames the body of a manifest record.
func ManifestRecord(sequence uint64, body string) []byte {
	record, err := recovery.AppendRecord(nil, sequence, json.RawMessage(body))
	if err != nil {
		panic(err)
	}
	return record
}

// FreezeNow freezes what can be frozen, after two rounds over all rows at most.
func (db *DB) FreezeNow() { db.freezer.Relieve() }

// BackupOn is Backup to another file system.
func (db *DB) BackupOn(ctx context.Context, fs vfs.FS, dir string) error {
	_, err := db.backup(ctx, fs, dir)
	return err
}

// LogRecord is a record of the log as anybody may have written it.
type LogRecord struct {
	Kind          logstream.Kind
	Row           rowid.ID
	Schema        uint16
	Keys, Payload []byte
}

// Forge writes a commit into the log, and nowhere else, and waits until it is
// durable.
func (db *DB) Forge(ctx context.Context, records ...LogRecord) error {
	bytes := 0
	for _, r := range records {
		bytes += logstream.RecordBytes(len(r.Keys), len(r.Payload))
	}
	t, err := db.log.Reserve(ctx, logstream.Request{Bytes: logstream.FrameBytes(bytes)})
	if err != nil {
		return err
	}
	enc := db.log.Encode(&t)
	for _, r := range records {
		enc.Append(r.Kind, r.Row, r.Schema, r.Keys, r.Payload)
	}
	enc.Finish()
	db.log.Publish(t)
	return db.log.WaitDurable(ctx, t.Round)
}

// SystemRow is the payload of a row of the table of tables.
func SystemRow(id uint16, name, definition string) []byte {
	layout, err := schema.NewLayout(systemSchema())
	if err != nil {
		panic(err)
	}
	row, err := layout.AppendRow(nil, []any{id, name, definition})
	if err != nil {
		panic(err)
	}
	return row
}
