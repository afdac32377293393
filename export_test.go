package rekindle

import (
	"encoding/json"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/recovery"
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
func (o Options) Budget() int64 { return o.withDefaults().MemoryBudget }

// Uncompacted returns options with which the log is not compacted.
func (o Options) Uncompacted() Options {
	o.uncompacted = true
	return o
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
