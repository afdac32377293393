package rekindle_test

import (
	"errors"
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
)

// mappedRows make arrays and indexes of many pages.
const mappedRows = 6000

// cuttable is a database in real files, some of which a test cuts while they are
// mapped: whoever then reads behind the cut meets a fault in the mapping, as on a
// medium that does not deliver a page.
type cuttable struct {
	t     *testing.T
	dir   string
	opts  rekindle.Options
	db    *rekindle.DB
	items *rekindle.Table[item]
	want  map[int64]item
	saved map[string][]byte
	fresh int64
}

func newCuttable(t *testing.T, strategy string) *cuttable {
	c := &cuttable{t: t, dir: t.TempDir(), want: map[int64]item{},
		opts: rekindle.Options{IndexStrategy: strategy, CheckpointBytes: -1, SegmentBytes: 1 << 20, MemoryBudget: -1}}
	c.open()
	for n := range int64(3) { // indexes of several files
		update(t, c.db, func(tx *rekindle.Tx) {
			for i := range int64(mappedRows) {
				if i%(1+9*n) == 0 { // fewer each time, spread over all pages
					row := item{ID: 10*i + n, Name: fmt.Sprintf("name %d of %d", i, n), Group: int32(i % 50)}
					require.NoError(t, c.items.Insert(tx, &row))
					c.want[row.ID] = row
				}
			}
		})
		require.NoError(t, c.db.Checkpoint(t.Context()))
	}
	require.NoError(t, c.db.Close(t.Context()))
	return c
}

func (c *cuttable) open() {
	var err error
	c.db, err = rekindle.Open(c.t.Context(), c.dir, &c.opts)
	require.NoError(c.t, err)
	c.items, err = rekindle.OpenTable[item](c.t.Context(), c.db, "items")
	require.NoError(c.t, err)
}

// cut shortens all mapped files whose name has the given part and keeps what
// they held.
func (c *cuttable) cut(part string, keep int64) (files int) {
	c.saved = map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(c.dir, "ckpt", "*", "*"+part+"*"))
	require.NoError(c.t, err)
	for _, name := range names {
		c.saved[name], err = os.ReadFile(name)
		require.NoError(c.t, err)
		require.NoError(c.t, os.Truncate(name, min(keep, int64(len(c.saved[name])))))
	}
	return len(names)
}

// restore puts back what cut took.
func (c *cuttable) restore() {
	for name, content := range c.saved {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) { // a checkpoint has let go of it
			continue
		}
		require.NoError(c.t, err)
		_, err = f.WriteAt(content, 0)
		require.NoError(c.t, errors.Join(err, f.Close()))
	}
}

// accept takes an answer: none, or that a file is damaged.
func (c *cuttable) accept(what string, err error) bool {
	c.t.Helper()
	if err == nil {
		return true
	}
	var e *rekindle.FileError
	require.ErrorAs(c.t, err, &e, what)
	require.True(c.t, errors.Is(err, rekindle.ErrCorrupt) || errors.Is(err, rekindle.ErrIndexDamaged), "%s: %v", what, err)
	require.True(c.t, strings.HasPrefix(e.Path, c.dir), what)
	return false
}

// read makes every kind of read and returns how many met the damage.
func (c *cuttable) read() (failed int) {
	t, ctx := c.t, c.t.Context()
	count := func(what string, err error) bool {
		ok := c.accept(what, err)
		if !ok {
			failed++
		}
		return ok
	}
	require.NoError(t, c.db.View(ctx, func(tx *rekindle.Tx) error {
		for i, id := range slices.Sorted(maps.Keys(c.want)) {
			if i%37 != 0 {
				continue
			}
			byID, byName := item{ID: id}, item{Name: c.want[id].Name}
			if count("Get", c.items.Get(tx, &byID)) {
				require.Equal(t, c.want[id], byID)
			}
			if count("GetBy", c.items.GetBy(tx, "name", &byName)) {
				require.Equal(t, c.want[id], byName)
			}
			many := []item{{ID: id}, {ID: -1 - id}, {ID: 1 << 40}}
			if missing, err := c.items.GetMany(tx, many); count("GetMany", err) {
				require.Equal(t, []int{1, 2}, missing)
				require.Equal(t, c.want[id], many[0])
			}
		}
		for _, q := range []rekindle.Query{
			{}, {Reverse: true}, {Index: "name"}, {Index: "group"}, {Index: "group", Reverse: true},
			{Index: "group", Prefix: []any{int32(7)}}, {Index: "name", Prefix: []any{"name 1"}, Starting: true},
			{From: []any{int64(1000)}, To: []any{int64(2000)}},
		} {
			for row, err := range c.items.Scan(tx, q) {
				if count("Scan", err) {
					require.Equal(t, c.want[row.ID], row)
				}
			}
		}
		return nil
	}))
	_, err := c.db.CrossCheck(ctx)
	count("CrossCheck", err)
	c.db.Stats()
	return failed
}

// write makes every kind of change, each in a transaction of its own.
func (c *cuttable) write() (failed int) {
	ctx := c.t.Context()
	change := func(what string, row item, fn func(*rekindle.Tx, *item) error, deleted bool) {
		err := c.db.Update(ctx, func(tx *rekindle.Tx) error { return fn(tx, &row) })
		switch {
		case !c.accept(what, err):
			failed++
		case deleted:
			delete(c.want, row.ID)
		default:
			c.want[row.ID] = row
		}
	}
	for i, id := range slices.Sorted(maps.Keys(c.want)) {
		row := c.want[id]
		switch i % 100 {
		case 1:
			row.Name += "'"
			change("Update", row, c.items.Update, false)
		case 30:
			change("Delete", row, c.items.Delete, true)
		case 60:
			row.Group += 1000
			change("Upsert", row, c.items.Upsert, false)
		case 90:
			c.fresh++
			change("Insert", item{ID: 1<<32 + c.fresh, Name: fmt.Sprint("new ", c.fresh)}, c.items.Insert, false)
		}
	}
	if !c.accept("Checkpoint", c.db.Checkpoint(ctx)) {
		failed++
	}
	if !c.accept("Compact", c.db.Compact(ctx)) {
		failed++
	}
	return failed
}

// finish restores the files and looks at what the next life finds.
func (c *cuttable) finish() {
	c.accept("Close", c.db.Close(c.t.Context()))
	c.restore()
	c.open()
	rows := allItems(c.t, c.db, c.items)
	require.Len(c.t, rows, len(c.want))
	for _, row := range rows {
		require.Equal(c.t, c.want[row.ID], row)
	}
	_, err := c.db.CrossCheck(c.t.Context())
	require.NoError(c.t, err)
	require.NoError(c.t, c.db.Close(c.t.Context()))
}

var mappedAll = flag.Bool("mapped.all", false, "TestFaultInMapping cuts every selection of files at every place")

// TestFaultInMapping cuts mapped files under an open database: every call that
// meets the cut returns an error which names the file, or is served otherwise;
// the process lives, nothing wrong is answered, Close works, and when the file is
// back everything is there.
func TestFaultInMapping(t *testing.T) {
	if !vfs.MapsFiles {
		t.Skip("files are read, not mapped")
	}
	parts, places := []string{"array-1", "index-1-0", "index-1"}, []int64{0}
	if *mappedAll {
		parts, places = append(parts, "index-1-1", "index-1-2", "index-0", "array-0", ""), append(places, 2048, 4096, 12288, 40000)
	}
	n := 0
	for _, strategy := range rekindle.IndexStrategies() {
		c := newCuttable(t, strategy)
		for _, part := range parts {
			if strategy == "rebuild" && strings.HasPrefix(part, "index") {
				continue
			}
			for _, keep := range places {
				n++
				for i, budget := range []int64{-1, 1 << 20} {
					if !*mappedAll && i != n%2 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%d/%d", strategy, part, keep, budget), func(t *testing.T) {
						c.copy(t, budget).live(part, keep)
					})
				}
			}
		}
	}
}

// copy makes another one with the same content.
func (c *cuttable) copy(t *testing.T, budget int64) *cuttable {
	other := &cuttable{t: t, dir: t.TempDir(), opts: c.opts, want: maps.Clone(c.want)}
	other.opts.MemoryBudget = budget
	require.NoError(t, os.CopyFS(other.dir, os.DirFS(c.dir)))
	return other
}

// live opens the database, cuts files and goes on with all calls.
func (c *cuttable) live(part string, keep int64) {
	c.open()
	require.Positive(c.t, c.cut(part, keep))
	failed := c.write() + c.read()
	failed += c.write() + c.read()
	if part != "index-0" && part != "array-0" { // little of the catalogue's is read again, and it is short
		require.True(c.t, failed > 0 || c.db.Stats().IndexRepairs > 0, "nothing met the damage")
	}
	c.finish()
}

// TestFaultWhileOpening cuts each file that an Open maps the moment it is mapped: its
// header and footer are read from there. An index has the rows to be rebuilt from.
func TestFaultWhileOpening(t *testing.T) {
	if !vfs.MapsFiles {
		t.Skip("files are read, not mapped")
	}
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			original := newCuttable(t, strategy)
			opened, refused := 0, 0
			for nth, met := 1, true; met; nth++ {
				var ok bool
				if ok, met = original.copy(t, -1).openCutting(nth); ok {
					opened++
				} else {
					refused++
				}
			}
			require.Greater(t, opened, 1)
			require.Positive(t, refused)
		})
	}
}

// openCutting opens the database and cuts the n-th file that is mapped. It reports
// whether that went well, and whether there is such a file.
func (c *cuttable) openCutting(n int) (ok, met bool) {
	maps := 0
	cutting := vfs.Wrap(vfs.Inside(c.dir), func(op vfs.Op, do func(vfs.Op) error) error {
		err := do(op)
		if op.Kind == vfs.OpMap && err == nil {
			if maps++; maps == n {
				return os.Truncate(op.Path, 0)
			}
		}
		return err
	})
	db, err := rekindle.Open(c.t.Context(), c.dir, c.opts.OnFS(cutting))
	met = maps >= n
	if !c.accept("open", err) {
		return false, met
	}
	require.Equal(c.t, met, len(db.RecoveryReport().Fallbacks) > 0, "file %d", n)
	items, err := rekindle.OpenTable[item](c.t.Context(), db, "items")
	require.NoError(c.t, err)
	require.Len(c.t, allItems(c.t, db, items), len(c.want))
	_, err = db.CrossCheck(c.t.Context())
	require.NoError(c.t, err)
	require.NoError(c.t, db.Close(c.t.Context()))
	return true, met
}
