package rekindle_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/recovery"
)

var goldenWrite = flag.Bool("golden.write", false, "TestGolden writes the databases of this format version, which must not exist")

// goldenContent is where a golden archive has the rows, beside the database.
const goldenContent = "content.json"

// TestGolden opens whole databases as a release of each format version has left
// them when it crashed: with two checkpoints, index entries that wait for removal
// and a tail of inserts, updates, deletes and relocations. They are to open for
// ever, with the content that the archive has beside them. A new format version
// adds archives, by -golden.write; those that exist are never written again.
func TestGolden(t *testing.T) {
	if *goldenWrite {
		for _, strategy := range rekindle.IndexStrategies() {
			writeGolden(t, strategy)
		}
	}
	archives, err := filepath.Glob("testdata/golden/*.zip")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".zip")
		if _, strategy, _ := strings.Cut(name, "-"); slices.Contains(rekindle.IndexStrategies(), strategy) { // or it is not built in
			t.Run(name, func(t *testing.T) { openGolden(t, archive) })
		}
	}
}

func openGolden(t *testing.T, archive string) {
	r, err := zip.OpenReader(archive)
	require.NoError(t, err)
	defer r.Close()
	content, err := fs.ReadFile(r, goldenContent)
	require.NoError(t, err)
	var want []item
	require.NoError(t, json.Unmarshal(content, &want))
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, &r.Reader))
	for _, o := range []rekindle.Options{{ReadOnly: true}, {VerifyOnOpen: true}, {}} {
		db, err := rekindle.Open(t.Context(), filepath.Join(root, "db"), &o)
		require.NoError(t, err)
		require.Empty(t, db.RecoveryReport().Fallbacks)
		require.Zero(t, db.RecoveryReport().BytesDropped)
		items, err := rekindle.OpenTable[item](t.Context(), db, "items")
		require.NoError(t, err)
		require.Equal(t, want, allItems(t, db, items))
		_, err = db.CrossCheck(t.Context())
		require.NoError(t, err)
		if !o.ReadOnly {
			want = append(want, item{ID: 1<<40 + int64(len(want)), Name: fmt.Sprint("after ", len(want))})
			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &want[len(want)-1])) })
		}
		require.NoError(t, db.Close(t.Context()))
	}
}

// writeGolden makes the archive of one strategy.
func writeGolden(t *testing.T, strategy string) {
	disk, rows := goldenDatabase(t, strategy)
	content, err := json.MarshalIndent(rows, "", " ")
	require.NoError(t, err)
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	files := disk.Dump()
	files[goldenContent] = content
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		require.NoError(t, err)
		_, err = f.Write(files[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	name := filepath.Join("testdata", "golden", fmt.Sprintf("v%d-%s.zip", recovery.FormatVersion, strategy))
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoFileExists(t, name, "a golden file is written once")
	require.NoError(t, os.WriteFile(name, archive.Bytes(), 0o644))
}

// goldenDatabase returns the disk of a crashed database and what it holds.
func goldenDatabase(t *testing.T, strategy string) (*vfs.Mem, []item) {
	mem := vfs.NewMem()
	db, items := openItems(t, mem, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: strategy})
	note := strings.Repeat("note ", 60)
	write := func(from, to int64) {
		for i := from; i < to; i++ {
			update(t, db, func(tx *rekindle.Tx) {
				require.NoError(t, items.Upsert(tx, &item{ID: i % 400, Name: fmt.Sprintf("row %d at %d", i%400, i), Group: int32(i % 7), Note: &note}))
			})
		}
	}
	write(0, 1200)
	require.NoError(t, db.Checkpoint(t.Context()))
	old, err := db.Begin(t.Context(), false) // keeps entries waiting for removal
	require.NoError(t, err)
	write(1200, 1300)
	require.NoError(t, db.Checkpoint(t.Context()))
	require.NoError(t, db.Compact(t.Context()))
	write(1300, 1350)
	update(t, db, func(tx *rekindle.Tx) {
		for id := range int64(30) {
			require.NoError(t, items.Delete(tx, &item{ID: 3 * id}))
		}
	})
	rows := allItems(t, db, items)
	disk := mem.CrashClone(nil, vfs.Keep)
	require.NoError(t, old.Rollback())
	require.NoError(t, db.Close(t.Context()))
	return disk, rows
}
