package rekindle_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// object is a JSON object of a manifest record.
type object = map[string]any

// manifestRecords splits a manifest file; numbers stay as they are written.
func manifestRecords(t *testing.T, file []byte) (records []object) {
	t.Helper()
	for len(file) > 0 {
		n := 24 + binary.LittleEndian.Uint32(file[4:])
		d := json.NewDecoder(bytes.NewReader(file[24:n]))
		d.UseNumber()
		var record object
		require.NoError(t, d.Decode(&record))
		records = append(records, record)
		file = file[n:]
	}
	return records
}

// forgeManifest changes the records of a disk's manifest; all checksums are right
// again.
func forgeManifest(t *testing.T, disk *vfs.Mem, change func(header, newest object)) (name string) {
	t.Helper()
	name = only(t, disk, "/db/MANIFEST-*")
	alter(t, disk, name, func(b []byte) (forged []byte) {
		records := manifestRecords(t, b)
		change(records[0], records[len(records)-1])
		for i, record := range records {
			body, err := json.Marshal(record)
			require.NoError(t, err)
			forged = append(forged, rekindle.ManifestRecord(uint64(i), string(body))...)
		}
		return forged
	})
	return name
}

// first returns the first element of a list of objects.
func first(list any) object { return list.([]any)[0].(object) }

// hostileNames are names of files that a manifest must not lead to.
func hostileNames() []string {
	return []string{
		"../secret", "/secret", "ckpt/../../secret", "ckpt/000002/../../../secret", "./../secret", "..", ".", "", "/",
		"CURRENT", "LOCK", "ckpt", "log/00-0000000000000000.log", "ckpt/000002", "ckpt/000002/", "ckpt//000002/suspects",
		"ckpt/000002/array-1.ria\x00", "ckpt\\000002\\suspects", `C:\secret`, `\\host\share`, "ckpt/000002/index-1-0.chain/x",
		"ckpt/000002/index-1-0.", "ckpt/000002/index-1-0", "ckpt/000002/index-1-0.../x", "ckpt/2/suspects", "ckpt/000003/suspects",
		"CKPT/000002/suspects", "ckpt/000002/index-1-0.iacow:stream", "con", "\xff", strings.Repeat("a/", 3000),
	}
}

// TestHostileManifest: a manifest that says anything else than the engine would
// have written, with all checksums right, is refused before a file is looked for
// that it names.
func TestHostileManifest(t *testing.T) {
	cases := map[string]func(header, newest object){
		"format 0":              func(h, _ object) { h["format"] = 0 },
		"no streams":            func(h, _ object) { h["log_streams"] = 0 },
		"streams below zero":    func(h, _ object) { h["log_streams"] = -1 },
		"64 streams":            func(h, _ object) { h["log_streams"] = 64 },
		"streams without end":   func(h, _ object) { h["log_streams"] = int64(1) << 62 },
		"tiny segments":         func(h, _ object) { h["segment_bytes"] = 512 },
		"huge segments":         func(h, _ object) { h["segment_bytes"] = int64(1) << 62 },
		"segments below zero":   func(h, _ object) { h["segment_bytes"] = int64(-1) << 63 },
		"short id":              func(h, _ object) { h["database_id"] = "00" },
		"long id":               func(h, _ object) { h["database_id"] = strings.Repeat("00", 17) },
		"header of other types": func(h, _ object) { h["log_streams"] = "one" },

		"checkpoint 0":          func(_, c object) { c["checkpoint"] = 0 },
		"checkpoint before":     func(_, c object) { c["checkpoint"] = 1 },
		"last checkpoint":       func(_, c object) { c["checkpoint"] = json.Number("18446744073709551615") },
		"last CTS":              func(_, c object) { c["cts"] = json.Number("18446744073709551615") },
		"CTS before":            func(_, c object) { c["cts"] = 1 },
		"last round":            func(_, c object) { c["round"] = json.Number("18446744073709551615") },
		"no replay positions":   func(_, c object) { c["replay"] = []any{} },
		"more replay positions": func(_, c object) { c["replay"] = []any{0, 0} },
		"no ends":               func(_, c object) { delete(c, "ends") },
		"end behind the last":   func(_, c object) { c["ends"] = []any{json.Number("18446744073709551615")} },
		"negative position":     func(_, c object) { c["replay"] = []any{-1} },
		"table twice":           func(_, c object) { c["tables"] = append(c["tables"].([]any), first(c["tables"])) },
		"no such table":         func(_, c object) { first(c["tables"])["table"] = 1 << 16 },
		"generation 0":          func(_, c object) { first(c["tables"])["generation"].(object)["Number"] = 0 },
		"generation to come":    func(_, c object) { first(c["tables"])["generation"].(object)["Number"] = 3 },
		"array below zero":      func(_, c object) { first(c["tables"])["generation"].(object)["Size"] = -1 },
		"index twice":           func(_, c object) { c["indexes"] = append(c["indexes"].([]any), first(c["indexes"])) },
		"index below zero":      func(_, c object) { first(c["indexes"])["index"] = -1 },
		"index 64":              func(_, c object) { first(c["indexes"])["index"] = 64 },
		"file below zero":       func(_, c object) { first(first(c["indexes"])["files"])["Size"] = -1 },
		"file of no checkpoint": func(_, c object) { first(first(c["indexes"])["files"])["Checkpoint"] = 0 },
		"live stream":           func(_, c object) { first(c["live"])["stream"] = 1 },
		"live stream -1":        func(_, c object) { first(c["live"])["stream"] = -1 },
		"live position":         func(_, c object) { first(c["live"])["first"] = 1 },
		"live bytes":            func(_, c object) { first(c["live"])["bytes"] = int64(1) << 62 },
		"negative live bytes":   func(_, c object) { first(c["live"])["bytes"] = -1 },
		"unknown field":         func(_, c object) { c["secret"] = "/secret" },
	}
	for _, name := range hostileNames() {
		cases[fmt.Sprintf("index file %q", name)] = func(_, c object) { first(first(c["indexes"])["files"])["Name"] = name }
		cases[fmt.Sprintf("array file %q", name)] = func(_, c object) { first(c["tables"])["files"] = []any{name} }
		if name != "ckpt/000002/suspects" {
			cases[fmt.Sprintf("suspects %q", name)] = func(_, c object) {
				c["suspects"] = object{"name": name, "size": 6, "sum": 0}
			}
		}
	}
	disk, _ := livedWith(t, rekindle.IndexStrategies()[0])
	require.NoError(t, vfs.WriteFileAtomic(disk, "/secret", []byte("secret")))
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			hostile := disk.CrashClone(nil, vfs.Keep)
			file := forgeManifest(t, hostile, cases[name])
			before := hostile.Dump()
			_, err := rekindle.Open(t.Context(), "/db", rekindle.Options{VerifyOnOpen: true}.OnFS(staysIn(t, hostile, "/db")))
			var e *rekindle.FileError
			require.ErrorAs(t, err, &e)
			require.Equal(t, file, e.Path)
			require.Equal(t, before, hostile.Dump())
			require.Zero(t, hostile.Handles())
		})
	}
}

// staysIn returns fs and makes sure that no operation leaves a directory, but for
// syncing the one that it is in.
func staysIn(t *testing.T, fs vfs.FS, dir string) vfs.FS {
	var mu sync.Mutex
	return vfs.WithLog(fs, func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		inside := op.Path == dir || strings.HasPrefix(path.Clean(op.Path), dir+"/")
		if !inside && !(op.Kind == vfs.OpSyncDir && op.Path == path.Dir(dir)) && !strings.HasPrefix(op.Path, "/sys/") && !strings.HasPrefix(op.Path, "/proc/") {
			t.Errorf("operation outside of the directory: %v", op)
		}
	})
}

// TestHostileNumbers: names with the largest numbers neither stop the engine nor
// make its own wrap around.
func TestHostileNumbers(t *testing.T) {
	disk, want := lived(t)
	for _, name := range []string{"ckpt/18446744073709551615", "ckpt/99999999999999999999", "ckpt/+7", "ckpt/4611686018427387904", "ckpt/000000"} {
		require.NoError(t, disk.MkdirAll("/db/"+name))
	}
	for _, name := range []string{"MANIFEST-18446744073709551615", "MANIFEST-", "MANIFEST-x", "CURRENT.bak", "ckpt/readme", "log/readme", "log/00-readme.log"} {
		require.NoError(t, vfs.WriteFileAtomic(disk, "/db/"+name, []byte("stray")))
	}
	for range 3 {
		db, items := openItems(t, staysIn(t, disk, "/db"), rekindle.Options{})
		require.Empty(t, db.RecoveryReport().Fallbacks)
		require.Equal(t, want, allItems(t, db, items))
		want = append(want, item{ID: 1000 + int64(len(want)), Name: fmt.Sprint("new", len(want))})
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &want[len(want)-1])) })
		require.NoError(t, db.Checkpoint(t.Context()))
		require.NoError(t, db.Close(t.Context()))
	}
	require.Contains(t, disk.Dump(), "db/log/readme", "only files of the engine are deleted")
	require.Contains(t, disk.Dump(), "db/ckpt/readme")
	require.NotContains(t, disk.Dump(), "db/ckpt/000002/array-1.ria", "strays do not keep it from that")

	hostile, _ := lived(t)
	alter(t, hostile, "/db/CURRENT", func([]byte) []byte { return []byte("MANIFEST-18446744073709551615\n") })
	_, err := rekindle.Open(t.Context(), "/db", rekindle.Options{}.OnFS(hostile))
	require.ErrorIs(t, err, rekindle.ErrCorrupt)
}

// TestUnreadableFiles: a file that may not be read is no damage. Nothing older is
// used in its place: the error says which file it is. Nor is it damage to Verify and
// Salvage, which could not do what they are for.
func TestUnreadableFiles(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		for name := range disk.Dump() {
			if strings.HasSuffix(name, "/") {
				continue
			}
			denied := errorfs.Count(errorfs.If(errorfs.All(errorfs.Kind(vfs.OpOpen, vfs.OpOpenRead, vfs.OpMap, vfs.OpLock), errorfs.PathGlob("/"+name)), syscall.EACCES))
			refuseToLook(t, disk.CrashClone(nil, vfs.Keep), denied)
			denied = errorfs.Count(denied)
			harmed := disk.CrashClone(nil, vfs.Keep)
			before := harmed.Dump()
			db, err := rekindle.Open(t.Context(), "/db", rekindle.Options{CheckpointBytes: -1}.OnFS(errorfs.Wrap(harmed, denied)))
			if err != nil {
				require.ErrorIs(t, err, fs.ErrPermission)
				require.ErrorContains(t, err, "/"+name)
				require.Equal(t, before, harmed.Dump())
				require.Zero(t, harmed.Handles())
				continue
			}
			require.Zero(t, denied.Injected(), name)
			require.Empty(t, db.RecoveryReport().Fallbacks)
			items, err := rekindle.OpenTable[item](t.Context(), db, "items")
			require.NoError(t, err)
			require.Equal(t, want, allItems(t, db, items))
			require.NoError(t, db.Close(t.Context()))
		}
	}
}

func refuseToLook(t *testing.T, disk *vfs.Mem, denied *errorfs.Counter) {
	fsys := errorfs.Wrap(disk, denied)
	_, err := rekindle.Verify(t.Context(), "/db", rekindle.Options{}.OnFS(fsys))
	require.ErrorIs(t, err, fs.ErrPermission)
	before := denied.Injected()
	_, err = rekindle.Salvage(t.Context(), "/db", "/out", rekindle.Options{}.OnFS(fsys))
	require.Equal(t, denied.Injected() > before, errors.Is(err, fs.ErrPermission), err)
}
