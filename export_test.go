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

// ManifestRecord frames the body of a manifest record.
func ManifestRecord(sequence uint64, body string) []byte {
	record, err := recovery.AppendRecord(nil, sequence, json.RawMessage(body))
	if err != nil {
		panic(err)
	}
	return record
}
