package rekindle_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden transcripts")

// transcript is the order of file operations: the cheapest durability test.
// A sync that is missing, or in the wrong place, is a line of the diff.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (tr *transcript) note(op vfs.Op) {
	if !op.Kind.Mutates() || op.Err != nil {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	line := variable.ReplaceAllString(op.String(), "$1")
	if n := len(tr.lines); n > 0 && tr.lines[n-1] == line {
		return // zero-filling repeats itself
	}
	tr.lines = append(tr.lines, line)
}

func (tr *transcript) section(name string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, "", "# "+name)
}

func (tr *transcript) check(t *testing.T, name string) {
	t.Helper()
	tr.mu.Lock()
	got := strings.TrimSpace(strings.Join(tr.lines, "\n")) + "\n"
	tr.mu.Unlock()
	path := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// variable is what differs from run to run: places and sizes of writes to
// files with checksums in decimal.
var variable = regexp.MustCompile(`(write \S*(?:MANIFEST|ria|record)\S*) \[.*\)`)

func TestTranscript(t *testing.T) {
	tr := &transcript{}
	fs := vfs.WithLog(vfs.NewMem(), tr.note)
	tr.section("create")
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: "rebuild"}
	db, err := rekindle.Open(t.Context(), "/db", o.OnFS(fs))
	require.NoError(t, err)
	tr.section("open a table")
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	for i := range int64(3) {
		tr.section(fmt.Sprintf("commit %d", i))
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i)})) })
	}
	for i := range int64(3) {
		tr.section(fmt.Sprintf("checkpoint %d", i))
		require.NoError(t, db.Checkpoint(t.Context()))
		tr.section("commit")
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Update(tx, &item{ID: i, Name: fmt.Sprint(i), Note: new(string)}))
		})
	}
	tr.section("close")
	require.NoError(t, db.Close(t.Context()))
	tr.section("open again")
	db, items = openItems(t, fs, rekindle.Options{CheckpointBytes: -1})
	tr.section("first commit")
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Upsert(tx, &item{ID: 1, Name: "1"})) })
	tr.section("close")
	require.NoError(t, db.Close(t.Context()))
	tr.check(t, "transcript")
}
