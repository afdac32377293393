package rekindle_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/alloctest"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// FuzzCheckpointRecord opens databases whose newest checkpoint record is anything,
// with a right checksum: that ends, in little memory, with a database that can be
// read and written or with an error that names a file.
func FuzzCheckpointRecord(f *testing.F) {
	disk, _ := livedWith(f, rekindle.IndexStrategies()[0])
	manifest := disk.Dump()[only(f, disk, "/db/MANIFEST-*")[1:]]
	at := 24 + int(binary.LittleEndian.Uint32(manifest[4:]))
	next := at + 24 + int(binary.LittleEndian.Uint32(manifest[at+4:]))
	f.Add(string(manifest[at+24 : next]))
	f.Add(string(manifest[next+24:]))
	f.Add(`{"checkpoint":2,"cts":21,"round":41,"replay":[21504],"ends":[21700]}`) // ends in front of the tables
	f.Add(`{"checkpoint":2,"cts":1,"round":1,"replay":[0],"ends":[0],"tables":null,"live":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) {
			t.Skip("for the fuzzer of manifests")
		}
		hostile := disk.CrashClone(nil, vfs.Keep)
		forged := append(slices.Clone(manifest[:next]), rekindle.ManifestRecord(2, body)...)
		alter(t, hostile, only(t, hostile, "/db/MANIFEST-*"), func([]byte) []byte { return forged })
		alloctest.Bound(t, 96<<20, 200, len(body), func() { openFuzzed(t, staysIn(t, hostile, "/db")) })
		require.Zero(t, hostile.Handles())
	})
}

// openFuzzed opens a database and uses it; errors have to name files.
func openFuzzed(t *testing.T, fs vfs.FS) {
	named := func(err error) bool {
		var e *rekindle.FileError
		require.True(t, err == nil || errors.As(err, &e), "%v", err)
		return err == nil
	}
	db, err := rekindle.Open(t.Context(), "/db", rekindle.Options{CheckpointBytes: -1}.OnFS(fs))
	if !named(err) {
		return
	}
	defer func() { named(db.Close(t.Context())) }()
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	if !named(err) {
		return
	}
	named(db.View(t.Context(), func(tx *rekindle.Tx) error {
		for _, err := range items.All(tx) {
			if err != nil {
				return err
			}
		}
		return nil
	}))
	named(db.Checkpoint(t.Context()))
}

// FuzzOptions opens databases with any options: they are refused as options, or
// work.
func FuzzOptions(f *testing.F) {
	f.Add(int64(0), 0, int64(0), int64(0), int64(0), int64(0), "", 0, int64(0))
	f.Add(int64(-1), 63, int64(1<<30), int64(-1), int64(-1), int64(0), "iacow", -1, int64(time.Second))
	f.Add(int64(1<<62), 1<<40, int64(-1<<63), int64(1<<62), int64(1<<62), int64(1<<62), "none", 1<<62, int64(-1))
	f.Add(int64(1), 2, int64(64<<10), int64(1), int64(1), int64(1), "rebuild", 1, int64(1))
	f.Fuzz(func(t *testing.T, durability int64, streams int, segment, checkpoint, budget, limit int64, strategy string, retries int, age int64) {
		o := rekindle.Options{
			Durability: rekindle.Durability(durability), LogStreams: streams, SegmentBytes: segment, CheckpointBytes: checkpoint,
			MemoryBudget: budget, MemoryLimit: limit, IndexStrategy: strategy, MaxRetries: retries, MaxSnapshotAge: time.Duration(age),
		}
		mem := vfs.NewMem()
		db, err := rekindle.Open(t.Context(), "/db", o.OnFS(mem))
		if err != nil {
			require.True(t, errors.Is(err, rekindle.ErrInvalidOptions) || errors.Is(err, rekindle.ErrMemoryLimit), "%v", err)
			return
		}
		require.NoError(t, db.Close(t.Context()))
		require.Zero(t, mem.Handles())
	})
}
