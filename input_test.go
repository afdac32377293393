package rekindle_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

func TestWrongTypes(t *testing.T) {
	db, _ := openItems(t, vfs.NewMem(), rekindle.Options{})
	defer db.Close(t.Context())
	schemaError := func(err error, column string) {
		t.Helper()
		var e *rekindle.SchemaError
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, rekindle.ErrSchema)
		require.Equal(t, "things", e.Table)
		require.Equal(t, column, e.Column)
		require.NotEmpty(t, e.Reason)
	}
	_, err := rekindle.OpenTable[int](t.Context(), db, "things")
	schemaError(err, "")
	_, err = rekindle.OpenTable[struct{ ID int64 }](t.Context(), db, "things")
	schemaError(err, "")
	_, err = rekindle.OpenTable[struct {
		ID int64 `rekindle:",pk,sorted"`
	}](t.Context(), db, "things")
	schemaError(err, "")
	require.ErrorContains(t, err, "ID")
	require.ErrorContains(t, err, "sorted")
	_, err = rekindle.OpenTable[struct {
		ID *int64 `rekindle:",pk"`
	}](t.Context(), db, "things")
	schemaError(err, "id")
	_, err = rekindle.OpenTable[struct {
		ID  int64 `rekindle:",pk"`
		Sub map[string]int
	}](t.Context(), db, "things")
	schemaError(err, "sub")
	require.Len(t, db.Tables(), 1)
}

func TestSchemaMismatch(t *testing.T) {
	fs := vfs.NewMem()
	db, _ := openItems(t, fs, rekindle.Options{})
	require.NoError(t, db.Close(t.Context()))
	db, _ = openItems(t, fs, rekindle.Options{})
	defer db.Close(t.Context())
	type other struct {
		ID    int64 `rekindle:",pk"`
		Name  int64 `rekindle:",unique"`
		Group int32 `rekindle:",index"`
		Note  *string
	}
	_, err := rekindle.OpenTable[other](t.Context(), db, "items")
	require.ErrorIs(t, err, rekindle.ErrSchemaMismatch)
	var e *rekindle.SchemaError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "name", e.Column)
	_, err = db.Table("nothing")
	require.ErrorIs(t, err, rekindle.ErrNotFound)
}

func TestTooLarge(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{SegmentBytes: 64 << 10})
	defer db.Close(t.Context())
	update(t, db, func(tx *rekindle.Tx) {
		var e *rekindle.TooLargeError
		err := items.Insert(tx, &item{ID: 1, Name: strings.Repeat("k", 5000)})
		require.ErrorIs(t, err, rekindle.ErrKeyTooLarge)
		require.ErrorAs(t, err, &e)
		require.Equal(t, "name", e.Index)
		long := strings.Repeat("n", 9000)
		err = items.Insert(tx, &item{ID: 1, Name: "x", Note: &long})
		require.ErrorIs(t, err, rekindle.ErrRowTooLarge)
		require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "x"}))
		require.ErrorIs(t, items.Update(tx, &item{ID: 1, Name: strings.Repeat("k", 5000)}), rekindle.ErrKeyTooLarge)
	})
	require.Len(t, allItems(t, db, items), 1)
}

// TestSearchBeyondTheKeyLimit looks for keys that are too long for an index,
// also where lengths pass what it counts them with.
func TestSearchBeyondTheKeyLimit(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		db, items := openItems(t, vfs.NewMem(), rekindle.Options{IndexStrategy: strategy})
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Insert(tx, &item{ID: 1, Name: strings.Repeat("a", 100)}))
			require.NoError(t, items.Insert(tx, &item{ID: 2, Name: strings.Repeat("a", 4000)}))
			require.NoError(t, items.Insert(tx, &item{ID: 3, Name: strings.Repeat("b", 100)}))
		})
		for _, n := range []int{4095, 4096, 4097, 65533, 65534, 65536, 65540, 65600, 1 << 20} {
			name := strings.Repeat("a", n)
			require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
				require.ErrorIs(t, items.GetBy(tx, "name", &item{Name: name}), rekindle.ErrNotFound)
				for _, reverse := range []bool{false, true} {
					require.Equal(t, []int64{3}, ids(t, items, tx, rekindle.Query{Index: "name", From: rekindle.Key(name), Reverse: reverse}), n)
					require.Len(t, ids(t, items, tx, rekindle.Query{Index: "name", To: rekindle.Key(name), Reverse: reverse}), 2, n)
					require.Empty(t, ids(t, items, tx, rekindle.Query{Index: "name", Prefix: rekindle.Key(name), Starting: true, Reverse: reverse}))
				}
				return nil
			}))
		}
		require.NoError(t, db.Close(t.Context()))
	}
}

func ids(t *testing.T, items *rekindle.Table[item], tx *rekindle.Tx, q rekindle.Query) (found []int64) {
	for row, err := range items.Scan(tx, q) {
		require.NoError(t, err)
		found = append(found, row.ID)
	}
	return found
}

// TestForeignTable uses tables of another database and of an earlier Open of
// the same one.
func TestForeignTable(t *testing.T) {
	disk, _ := lived(t)
	old, oldItems := openItems(t, disk, rekindle.Options{})
	require.NoError(t, old.Close(t.Context()))
	db, items := openItems(t, disk, rekindle.Options{})
	other, otherItems := openItems(t, vfs.NewMem(), rekindle.Options{})
	for _, foreign := range []*rekindle.Table[item]{oldItems, otherItems} {
		row := item{ID: 1}
		update(t, db, func(tx *rekindle.Tx) {
			require.ErrorIs(t, foreign.Get(tx, &row), rekindle.ErrForeignTable)
			require.ErrorIs(t, foreign.Insert(tx, &row), rekindle.ErrForeignTable)
			require.ErrorIs(t, foreign.Delete(tx, &row), rekindle.ErrForeignTable)
			_, err := foreign.GetMany(tx, []item{row})
			require.ErrorIs(t, err, rekindle.ErrForeignTable)
			for _, err := range foreign.All(tx) {
				require.ErrorIs(t, err, rekindle.ErrForeignTable)
			}
			require.NoError(t, items.Get(tx, &row))
		})
	}
	require.NoError(t, other.Close(t.Context()))
	require.NoError(t, db.Close(t.Context()))
}

func TestWrongQueries(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	defer db.Close(t.Context())
	wrong := []rekindle.Query{
		{Index: "nothing"},
		{Limit: -1},
		{Prefix: rekindle.Key("text")},
		{Prefix: rekindle.Key(1, 2)},
		{Prefix: rekindle.Key(struct{}{})},
		{Starting: true},
		{Index: "name", Starting: true, Prefix: rekindle.Key("x"), From: rekindle.Key("y")},
		{Index: "group", Prefix: rekindle.Key(int64(1) << 40)},
	}
	require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
		for _, q := range wrong {
			var errs []error
			for _, err := range items.Scan(tx, q) {
				errs = append(errs, err)
			}
			require.Len(t, errs, 1, "%+v", q)
			require.Error(t, errs[0], "%+v", q)
		}
		require.ErrorIs(t, items.GetBy(tx, "group", &item{}), rekindle.ErrInvalidQuery)
		return nil
	}))
}

// TestNullIsNotUnique: any number of rows have NULL in a unique index, so none is
// found by it.
func TestNullIsNotUnique(t *testing.T) {
	db, _ := openItems(t, vfs.NewMem(), rekindle.Options{})
	defer db.Close(t.Context())
	type user struct {
		ID   int64   `rekindle:",pk"`
		Nick *string `rekindle:",unique=nick"`
		Team int32   `rekindle:",unique=nick"`
	}
	users, err := rekindle.OpenTable[user](t.Context(), db, "users")
	require.NoError(t, err)
	nick, other := "ada", "eve"
	update(t, db, func(tx *rekindle.Tx) {
		require.NoError(t, users.Insert(tx, &user{ID: 1, Nick: &nick}))
		require.NoError(t, users.Insert(tx, &user{ID: 2}))
		require.NoError(t, users.Insert(tx, &user{ID: 3}))
	})
	require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
		row := user{Nick: &nick}
		require.NoError(t, users.GetBy(tx, "nick", &row))
		require.Equal(t, int64(1), row.ID)
		require.ErrorIs(t, users.GetBy(tx, "nick", &user{}), rekindle.ErrInvalidQuery)
		var missing *rekindle.NotFoundError
		require.ErrorAs(t, users.GetBy(tx, "nick", &user{Nick: &other}), &missing)
		require.Equal(t, "nick", missing.Index)
		return nil
	}))
}

func TestNegativeDurability(t *testing.T) {
	disk := vfs.NewMem()
	_, err := rekindle.Open(t.Context(), "/db", rekindle.Options{Durability: rekindle.Interval(-time.Second)}.OnFS(disk))
	require.ErrorIs(t, err, rekindle.ErrInvalidOptions)
	db, _ := openItems(t, disk, rekindle.Options{})
	defer db.Close(t.Context())
	update(t, db, func(tx *rekindle.Tx) {
		require.ErrorIs(t, tx.SetDurability(rekindle.Interval(-time.Second)), rekindle.ErrInvalidOptions)
		require.NoError(t, tx.SetDurability(rekindle.None))
	})
}

func TestSecondOpener(t *testing.T) {
	fs := vfs.NewMem()
	db, _ := openItems(t, fs, rekindle.Options{})
	_, err := rekindle.Open(t.Context(), "/db", rekindle.Options{}.OnFS(fs))
	require.ErrorIs(t, err, rekindle.ErrLocked)
	require.NoError(t, db.Close(t.Context()))
	db, _ = openItems(t, fs, rekindle.Options{})
	require.NoError(t, db.Close(t.Context()))
}

func TestWrongOptions(t *testing.T) {
	mem := vfs.NewMem()
	for _, o := range []rekindle.Options{{SegmentBytes: 1000}, {SegmentBytes: 96 << 10}, {LogStreams: -1}, {LogStreams: 1000}, {MemoryLimit: -1}, {IndexStrategy: "magic"}} {
		_, err := rekindle.Open(t.Context(), "/db", o.OnFS(mem))
		require.ErrorIs(t, err, rekindle.ErrInvalidOptions, "%+v", o)
	}
	require.Empty(t, mem.Dump())
	db, _ := openItems(t, mem, rekindle.Options{SegmentBytes: 128 << 10, LogStreams: 2})
	require.NoError(t, db.Close(t.Context()))
	before := mem.Dump()
	for _, o := range []rekindle.Options{{SegmentBytes: 64 << 10}, {LogStreams: 3}} {
		_, err := rekindle.Open(t.Context(), "/db", o.OnFS(mem))
		require.ErrorIs(t, err, rekindle.ErrInvalidOptions, "%+v", o)
	}
	require.Equal(t, before, mem.Dump())
}

// lived returns the disk of a database with two checkpoints and a tail, and
// what it holds.
func lived(t *testing.T) (*vfs.Mem, []item) { return livedWith(t, "rebuild") }

func livedWith(t testing.TB, strategy string) (*vfs.Mem, []item) {
	fs := vfs.NewMem()
	db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: strategy})
	for i := range int64(60) {
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i), Group: int32(i % 4)}))
		})
		if i%20 == 19 && i < 50 {
			require.NoError(t, db.Checkpoint(t.Context()))
		}
	}
	want := allItems(t, db, items)
	disk := fs.CrashClone(nil, vfs.Keep)
	require.NoError(t, db.Close(t.Context()))
	return disk, want
}

// alter rewrites a file of a disk.
func alter(t *testing.T, disk *vfs.Mem, name string, change func([]byte) []byte) {
	t.Helper()
	data := change(disk.Dump()[strings.TrimPrefix(name, "/")])
	require.NoError(t, disk.Remove(name))
	f, err := disk.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func only(t testing.TB, disk *vfs.Mem, pattern string) string {
	t.Helper()
	var names []string
	for name := range disk.Dump() {
		if ok, err := filepath.Match(pattern, "/"+name); ok && err == nil {
			names = append(names, "/"+name)
		}
	}
	require.Len(t, names, 1, pattern)
	return names[0]
}

// TestRefused: each of these is refused with its own error, which names the
// file, and without changing a byte.
func TestRefused(t *testing.T) {
	cases := []struct {
		name string
		harm func(t *testing.T, disk *vfs.Mem) (file string)
		want error
	}{
		{"manifest of another format version", func(t *testing.T, disk *vfs.Mem) string {
			name := only(t, disk, "/db/MANIFEST-*")
			alter(t, disk, name, func(b []byte) []byte { return futureManifest(t, b) })
			return name
		}, rekindle.ErrFormat},
		{"CURRENT lost", func(t *testing.T, disk *vfs.Mem) string {
			require.NoError(t, disk.Remove("/db/CURRENT"))
			return "/db/CURRENT"
		}, rekindle.ErrMissingFile},
		{"CURRENT names nothing", func(t *testing.T, disk *vfs.Mem) string {
			alter(t, disk, "/db/CURRENT", func([]byte) []byte { return []byte("../../etc/passwd\n") })
			return "/db/CURRENT"
		}, rekindle.ErrCorrupt},
		{"manifest lost", func(t *testing.T, disk *vfs.Mem) string {
			name := only(t, disk, "/db/MANIFEST-*")
			require.NoError(t, disk.Remove(name))
			return name
		}, rekindle.ErrMissingFile},
		{"manifest header damaged", func(t *testing.T, disk *vfs.Mem) string {
			name := only(t, disk, "/db/MANIFEST-*")
			alter(t, disk, name, func(b []byte) []byte { b[30] ^= 1; return b })
			return name
		}, rekindle.ErrCorrupt},
		{"log lost", func(t *testing.T, disk *vfs.Mem) string {
			name := "/db/log/00-0000000000000000.log"
			require.NoError(t, disk.Remove(name))
			return name
		}, rekindle.ErrMissingFile},
		{"log damaged in the middle", func(t *testing.T, disk *vfs.Mem) string {
			name := "/db/log/00-0000000000000000.log"
			alter(t, disk, name, func(b []byte) []byte { b[49*512+100] ^= 1; return b })
			return name
		}, rekindle.ErrCorrupt},
		{"log of another database", func(t *testing.T, disk *vfs.Mem) string {
			other, _ := lived(t)
			name := "/db/log/00-0000000000000000.log"
			alter(t, disk, name, func([]byte) []byte { return other.Dump()[strings.TrimPrefix(name, "/")] })
			return name
		}, rekindle.ErrForeignFile},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			disk, _ := lived(t)
			file := c.harm(t, disk)
			before := disk.Dump()
			_, err := rekindle.Open(t.Context(), "/db", rekindle.Options{}.OnFS(disk))
			require.ErrorIs(t, err, c.want)
			var e *rekindle.FileError
			require.ErrorAs(t, err, &e)
			require.Equal(t, file, e.Path)
			require.Equal(t, before, disk.Dump())
			require.Equal(t, c.want != rekindle.ErrFormat, strings.Contains(err.Error(), "Salvage"), "what to do")
		})
	}
}

// futureManifest gives the header of a manifest the next format version.
func futureManifest(t *testing.T, b []byte) []byte {
	t.Helper()
	n := binary.LittleEndian.Uint32(b[4:])
	body := strings.Replace(string(b[24:24+n]), `"format":1`, `"format":2`, 1)
	return rekindle.ManifestRecord(0, body)
}

// TestFallsBack: what is damaged has an older or slower substitute, which
// serves the same content, and the report says so.
func TestFallsBack(t *testing.T) {
	cases := map[string]func(t *testing.T, disk *vfs.Mem){
		"newest array damaged": func(t *testing.T, disk *vfs.Mem) {
			alter(t, disk, "/db/ckpt/000002/array-1.ria", func(b []byte) []byte { b[len(b)-3] ^= 1; return b })
		},
		"newest array cut": func(t *testing.T, disk *vfs.Mem) {
			alter(t, disk, "/db/ckpt/000002/array-1.ria", func(b []byte) []byte { return b[:len(b)/2] })
		},
		"newest array lost": func(t *testing.T, disk *vfs.Mem) {
			require.NoError(t, disk.Remove("/db/ckpt/000002/array-1.ria"))
		},
		"newest manifest record torn": func(t *testing.T, disk *vfs.Mem) {
			alter(t, disk, only(t, disk, "/db/MANIFEST-*"), func(b []byte) []byte { return b[:len(b)-5] })
		},
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			disk, want := lived(t)
			harm(t, disk)
			db, items := openItems(t, disk, rekindle.Options{})
			require.EqualValues(t, 1, db.RecoveryReport().Checkpoint)
			require.NotEmpty(t, db.RecoveryReport().Fallbacks)
			require.Equal(t, want, allItems(t, db, items))
			_, err := db.CrossCheck(t.Context())
			require.NoError(t, err)
			require.NoError(t, db.Close(t.Context()))
		})
	}
}

// TestReadOnly: a crashed database can be looked at without changing anything,
// also where nothing can be changed or where the lock file is missing.
func TestReadOnly(t *testing.T) {
	crashed, want := lived(t)
	unlocked := crashed.CrashClone(nil, vfs.Keep)
	require.NoError(t, unlocked.Remove("/db/LOCK"))
	for _, disk := range []*vfs.Mem{crashed, unlocked} {
		before := disk.Dump()
		disk.OnOp(func(_ int, op vfs.Op) error { return op.Fail(fs.ErrPermission) })
		db, items := openItems(t, disk, rekindle.Options{ReadOnly: true})
		require.Equal(t, want, allItems(t, db, items))
		require.ErrorIs(t, db.Update(t.Context(), func(*rekindle.Tx) error { return nil }), rekindle.ErrReadOnly)
		require.ErrorIs(t, db.Checkpoint(t.Context()), rekindle.ErrReadOnly)
		require.ErrorIs(t, db.Compact(t.Context()), rekindle.ErrReadOnly)
		_, err := rekindle.OpenTable[seat](t.Context(), db, "seats")
		require.ErrorIs(t, err, rekindle.ErrNotFound)
		require.NoError(t, db.Close(t.Context()))
		require.Equal(t, before, disk.Dump())
	}
}

// TestNothingThere: what looks for a database where there is none says so and
// makes nothing.
func TestNothingThere(t *testing.T) {
	empty := vfs.NewMem()
	require.NoError(t, empty.MkdirAll("/db"))
	for _, disk := range []*vfs.Mem{vfs.NewMem(), empty} {
		before := disk.Dump()
		_, err := rekindle.Open(t.Context(), "/db", rekindle.Options{ReadOnly: true}.OnFS(disk))
		require.ErrorIs(t, err, rekindle.ErrMissingFile)
		err = rekindle.Convert(t.Context(), "/db", "rebuild", rekindle.Options{}.OnFS(disk))
		require.ErrorIs(t, err, rekindle.ErrMissingFile)
		require.Equal(t, before, disk.Dump())
	}
}

// TestProgressGivesUp: a Progress function that does not return leaves nothing
// open, neither lock nor memory.
func TestProgressGivesUp(t *testing.T) {
	disk, want := lived(t)
	before := disk.Dump()
	for _, phase := range []string{"replay", "index/items"} {
		for _, leave := range []func(){func() { panic(errStop) }, runtime.Goexit} {
			o := rekindle.Options{Progress: func(p rekindle.Progress) {
				if p.Phase == phase {
					leave()
				}
			}}
			var group sync.WaitGroup
			group.Go(func() {
				defer func() { _ = recover() }()
				_, err := rekindle.Open(t.Context(), "/db", o.OnFS(disk))
				t.Error("Open has returned: ", err)
			})
			group.Wait()
			require.Equal(t, before, disk.Dump(), phase)
		}
	}
	db, items := openItems(t, disk, rekindle.Options{})
	require.Equal(t, want, allItems(t, db, items))
	require.NoError(t, db.Close(t.Context()))
}

// TestFailedSync: after a failed sync the database is read-only for good, and
// nothing that was not on disk is ever served as if it were.
func TestFailedSync(t *testing.T) {
	mem := vfs.NewMem()
	db, items := openItems(t, mem, rekindle.Options{CheckpointBytes: -1})
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "x"})) })
	broken := errors.New("broken disk")
	mem.OnOp(func(_ int, op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return broken
		}
		return nil
	})
	err := db.Update(t.Context(), func(tx *rekindle.Tx) error { return items.Insert(tx, &item{ID: 2, Name: "y"}) })
	require.ErrorIs(t, err, rekindle.ErrCommitUnknown)
	mem.OnOp(nil)
	require.ErrorIs(t, db.Update(t.Context(), func(tx *rekindle.Tx) error { return nil }), rekindle.ErrReadOnly)
	require.Equal(t, []item{{ID: 1, Name: "x"}}, allItems(t, db, items))
	require.Error(t, db.Checkpoint(t.Context()))
	require.Error(t, db.Close(t.Context()))

	db, items = openItems(t, mem.CrashClone(nil, vfs.Strict), rekindle.Options{})
	require.Equal(t, []item{{ID: 1, Name: "x"}}, allItems(t, db, items))
	require.NoError(t, db.Close(t.Context()))
}

// indexFiles lists the index files of a disk.
func indexFiles(disk *vfs.Mem) (names []string) {
	for name := range disk.Dump() {
		if strings.Contains(name, "/index-") {
			names = append(names, "/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// TestLostFile takes any one file away: the database opens with all that it had,
// or names what is missing.
func TestLostFile(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		fs := vfs.NewMem()
		db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: strategy})
		note := strings.Repeat("n", 1000)
		for i := range int64(300) {
			update(t, db, func(tx *rekindle.Tx) {
				require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i), Note: &note}))
			})
			if i%100 == 99 {
				require.NoError(t, db.Checkpoint(t.Context()))
			}
		}
		want := allItems(t, db, items)
		require.NoError(t, db.Close(t.Context()))
		refused := 0
		for name := range fs.Dump() {
			if strings.HasSuffix(name, "/") || name == "db/LOCK" {
				continue
			}
			disk := fs.CrashClone(nil, vfs.Keep)
			require.NoError(t, disk.Remove("/"+name))
			db, err := rekindle.Open(t.Context(), "/db", rekindle.Options{}.OnFS(disk))
			if err != nil {
				var e *rekindle.FileError
				require.ErrorAs(t, err, &e, name)
				require.ErrorIs(t, err, rekindle.ErrMissingFile, name)
				refused++
				continue
			}
			items, err := rekindle.OpenTable[item](t.Context(), db, "items")
			require.NoError(t, err)
			require.Equal(t, want, allItems(t, db, items), name)
			_, err = db.CrossCheck(t.Context())
			require.NoError(t, err, name)
			require.NoError(t, db.Close(t.Context()))
		}
		require.Greater(t, refused, 5)
	}
}

// TestDamagedIndex harms every index file in every way: the answer is then the
// right one or a typed error, and with VerifyOnOpen always the right one, with
// the damage in the report.
func TestDamagedIndex(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		names := indexFiles(disk)
		if strategy == "rebuild" {
			require.Empty(t, names)
			continue
		}
		require.NotEmpty(t, names)
		newest := names[len(names)-1]
		harms := map[string]func(*vfs.Mem){
			"lost":    func(d *vfs.Mem) { require.NoError(t, d.Remove(newest)) },
			"empty":   func(d *vfs.Mem) { alter(t, d, newest, func([]byte) []byte { return nil }) },
			"cut":     func(d *vfs.Mem) { alter(t, d, newest, func(b []byte) []byte { return b[:len(b)-1] }) },
			"swapped": func(d *vfs.Mem) { alter(t, d, newest, func([]byte) []byte { return d.Dump()[names[0][1:]] }) },
		}
		size := len(disk.Dump()[newest[1:]])
		for at := 0; at < size; at += 1 + size/40 {
			harms[fmt.Sprintf("bit flipped at %d", at)] = func(d *vfs.Mem) {
				alter(t, d, newest, func(b []byte) []byte { b[at] ^= 4; return b })
			}
		}
		for name, harm := range harms {
			t.Run(strategy+"/"+name, func(t *testing.T) {
				harmed := disk.CrashClone(nil, vfs.Keep)
				harm(harmed)
				checkHarmed(t, harmed.CrashClone(nil, vfs.Keep), want)
				db, items := openItems(t, harmed, rekindle.Options{VerifyOnOpen: true})
				require.NotEmpty(t, db.RecoveryReport().Fallbacks)
				require.Equal(t, want, allItems(t, db, items))
				_, err := db.CrossCheck(t.Context())
				require.NoError(t, err)
				require.NoError(t, db.Close(t.Context()))
			})
		}
	}
}

// TestDamagedSuspects: suspects only save space, so a database opens without
// them and says so. Strategies without index files write none.
func TestDamagedSuspects(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			fs := vfs.NewMem()
			db, items := openItems(t, fs, rekindle.Options{CheckpointBytes: -1, IndexStrategy: strategy})
			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "a"})) })
			old, err := db.Begin(t.Context(), false) // keeps the suspects waiting
			require.NoError(t, err)
			update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Update(tx, &item{ID: 1, Name: "b"})) })
			require.NoError(t, db.Checkpoint(t.Context()))
			disk := fs.CrashClone(nil, vfs.Keep)
			require.NoError(t, old.Rollback())
			require.NoError(t, db.Close(t.Context()))

			const name = "/db/ckpt/000001/suspects"
			if strategy == "rebuild" {
				require.NotContains(t, disk.Dump(), name[1:])
				return
			}
			for what, harm := range map[string]func(*vfs.Mem){
				"lost": func(d *vfs.Mem) { require.NoError(t, d.Remove(name)) },
				"cut":  func(d *vfs.Mem) { alter(t, d, name, func(b []byte) []byte { return b[:len(b)-1] }) },
				"flip": func(d *vfs.Mem) { alter(t, d, name, func(b []byte) []byte { b[40] ^= 1; return b }) },
			} {
				harmed := disk.CrashClone(nil, vfs.Keep)
				harm(harmed)
				db, items := openItems(t, harmed, rekindle.Options{})
				require.Len(t, db.RecoveryReport().Fallbacks, 1, what)
				require.Equal(t, []item{{ID: 1, Name: "b"}}, allItems(t, db, items), what)
				_, err := db.CrossCheck(t.Context())
				require.NoError(t, err, what)
				require.NoError(t, db.Close(t.Context()), what)
			}
		})
	}
}

// checkHarmed looks at a disk with a damaged file: whatever is answered is true.
// checkHarmed opens without looking for damage: what meets it is told so, and the
// index is rebuilt while the database is in use.
func checkHarmed(t *testing.T, disk *vfs.Mem, want []item) {
	t.Helper()
	db, items := openItems(t, disk, rekindle.Options{CheckpointBytes: -1})
	met := len(db.RecoveryReport().Fallbacks) > 0
	lookUp := func() (failed error) {
		require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
			for _, err := range items.Scan(tx, rekindle.Query{Index: "group"}) {
				if failed = err; err != nil {
					requireFileError(t, err)
				}
			}
			for _, row := range want {
				for _, get := range []func(*item) error{
					func(r *item) error { r.ID = row.ID; return items.Get(tx, r) },
					func(r *item) error { r.Name = row.Name; return items.GetBy(tx, "name", r) },
				} {
					var got item
					if err := get(&got); err != nil {
						requireFileError(t, err)
						require.ErrorIs(t, err, rekindle.ErrIndexDamaged)
						failed = err
					} else {
						require.Equal(t, row, got)
					}
				}
			}
			return nil
		}))
		return failed
	}
	if lookUp() != nil {
		met = true
		require.Eventually(t, func() bool { return lookUp() == nil }, 10*time.Second, time.Millisecond)
		require.Eventually(t, func() bool { return db.Stats().IndexRepairs > 0 }, 10*time.Second, time.Millisecond)
	}
	require.Equal(t, want, allItems(t, db, items))
	update(t, db, func(tx *rekindle.Tx) {
		require.ErrorIs(t, items.Insert(tx, &item{ID: -1, Name: want[0].Name}), rekindle.ErrDuplicateKey)
		require.NoError(t, items.Insert(tx, &item{ID: -1, Name: "after the damage"}))
	})
	_, err := db.CrossCheck(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	if !met {
		return // nothing has read the damaged place
	}
	db, items = openItems(t, disk, rekindle.Options{VerifyOnOpen: true})
	require.Empty(t, db.RecoveryReport().Fallbacks)
	require.Len(t, allItems(t, db, items), len(want)+1)
	require.NoError(t, db.Close(t.Context()))
}

func requireFileError(t *testing.T, err error) {
	t.Helper()
	var e *rekindle.FileError
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Path)
}
