package rekindle_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/alloctest"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// hostileRecords are commits that the engine would not write, for a database with
// the table items.
func hostileRecords() map[string][]rekindle.LogRecord {
	definition := func(name, indexes string) string {
		return fmt.Sprintf(`{"format":1,"name":%q,"columns":[{"name":"id","type":"int64"}],"indexes":[%s]}`, name, indexes)
	}
	const primary = `{"name":"primary","columns":[0],"unique":true}`
	sys := func(ordinal uint64, id uint16, name, def string) rekindle.LogRecord {
		return rekindle.LogRecord{Kind: logstream.Insert, Row: rowid.Make(0, ordinal), Payload: rekindle.SystemRow(id, name, def)}
	}
	row := func(table rowid.Table, ordinal uint64, payload string) rekindle.LogRecord {
		return rekindle.LogRecord{Kind: logstream.Insert, Row: rowid.Make(table, ordinal), Payload: []byte(payload)}
	}
	wide := strings.Repeat(`{"name":"c","type":"int64"},`, 30000)
	far := uint64(1)<<48 - 1
	var spread []rekindle.LogRecord
	for i := range uint64(60) {
		spread = append(spread, row(1, i<<40|1<<39, "x"))
	}
	var tables []rekindle.LogRecord
	for i := range 60 {
		tables = append(tables, row(rowid.Table(100+i*1000), far, "x"))
	}
	old := logstream.AppendOldKey(nil, 0, 0, []byte("key"))
	return map[string][]rekindle.LogRecord{
		"system table defines itself": {sys(50, 0, "x", definition("x", primary))},
		"id twice":                    {sys(50, 1, "x", definition("x", primary))},
		"id twice, new names":         {sys(50, 7, "x", definition("x", primary)), sys(51, 7, "y", definition("y", primary))},
		"name twice":                  {sys(50, 9, "items", definition("items", primary))},
		"name in row differs":         {sys(50, 9, "other", definition("nother", primary))},
		"last id":                     {sys(50, 65535, "x", definition("x", primary))},
		"not JSON":                    {sys(50, 9, "x", "{")},
		"future format":               {sys(50, 9, "x", `{"format":2}`)},
		"null":                        {sys(50, 9, "x", `null`)},
		"no table":                    {sys(50, 9, "x", `{"format":1}`)},
		"wide":                        {sys(50, 9, "x", `{"format":1,"name":"x","columns":[`+wide+`{"name":"d","type":"int64"}],"indexes":[`+primary+`]}`)},
		"unknown index field":         {sys(50, 9, "x", definition("x", `{"name":"primary","columns":[0],"unique":true,"kind":"hash"}`))},
		"index column out of range":   {sys(50, 9, "x", definition("x", `{"name":"primary","columns":[1],"unique":true}`))},
		"index column huge":           {sys(50, 9, "x", definition("x", `{"name":"primary","columns":[99999999999999999999],"unique":true}`))},
		"deep":                        {sys(50, 9, "x", strings.Repeat("[", 15000))},
		"system payload garbage":      {row(0, 50, "garbage")},
		"system payload empty":        {row(0, 50, "")},
		"system payload columns":      {row(0, 50, "\xff\xff\x00\x00")},
		"system row far":              {sys(far, 9, "x", definition("x", primary))},
		"system schema version":       {{Kind: logstream.Insert, Row: rowid.Make(0, 50), Schema: 7, Payload: rekindle.SystemRow(9, "x", definition("x", primary))}},
		"row far":                     {row(1, far, "x")},
		"row far, of nobody":          {row(77, far, "x")},
		"rows spread":                 spread,
		"tables":                      tables,
		"row of table -1":             {row(65535, 1, "x")},
		"row 0":                       {row(1, 0, "x")},
		"row garbage":                 {row(1, 500, "garbage")},
		"row empty":                   {row(1, 500, "")},
		"row of another schema":       {{Kind: logstream.Insert, Row: rowid.Make(1, 500), Schema: 9, Payload: rekindle.SystemRow(9, "x", "y")}},
		"image without old":           {{Kind: logstream.Image, Row: rowid.Make(1, 500), Payload: []byte("x")}},
		"image over garbage":          {{Kind: logstream.Image, Row: rowid.Make(1, 5), Payload: []byte("x")}},
		"delete of nothing":           {{Kind: logstream.Delete, Row: rowid.Make(1, 500), Keys: old}},
		"delete of nobody":            {{Kind: logstream.Delete, Row: rowid.Make(99, 500), Keys: old}},
		"delete far":                  {{Kind: logstream.Delete, Row: rowid.Make(1, far), Keys: old}},
		"delete without keys":         {{Kind: logstream.Delete, Row: rowid.Make(1, 5)}},
		"delete of index 63":          {{Kind: logstream.Delete, Row: rowid.Make(1, 5), Keys: logstream.AppendOldKey(nil, 0, 63, []byte("key"))}},
		"delete with long key":        {{Kind: logstream.Delete, Row: rowid.Make(1, 5), Keys: logstream.AppendOldKey(nil, 0, 0, make([]byte, 7000))}},
		"delete with broken keys":     {{Kind: logstream.Delete, Row: rowid.Make(1, 5), Keys: []byte{1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}}},
		"relocation from nowhere":     {{Kind: logstream.Relocation, Row: rowid.Make(1, 5), Keys: logstream.Origin{CTS: 1, Address: 1 << 63}.AppendTo(nil), Payload: []byte("x")}},
		"same row twice":              {row(1, 500, "a"), row(1, 500, "b")},
		"delete of definition":        {{Kind: logstream.Delete, Row: rowid.Make(0, 1), Keys: old}},
	}
}

// TestHostileLog forges commits with right checksums, in the tail and then in a
// checkpoint. Whatever is done with what is left ends soon, in little memory, with a
// result or with an error that names a file, and Salvage gets the other rows out.
func TestHostileLog(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the forger's own memory does not have what is in its log")
	}
	all := hostileRecords()
	for _, strategy := range rekindle.IndexStrategies() {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(strategy+"/"+name, func(t *testing.T) {
				fs := vfs.NewMem()
				db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 1 << 20, CheckpointBytes: -1, IndexStrategy: strategy})
				update(t, db, func(tx *rekindle.Tx) {
					for i := range int64(20) {
						require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i)}))
					}
				})
				require.NoError(t, db.Checkpoint(t.Context()))
				require.NoError(t, db.Forge(t.Context(), all[name]...))
				useForged(t, fs.CrashClone(nil, vfs.Keep))
				if err := db.Checkpoint(t.Context()); err == nil {
					useForged(t, fs.CrashClone(nil, vfs.Keep))
				}
				_ = db.Close(t.Context()) // what the forger did in its own process does not matter
			})
		}
	}
}

func useForged(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	within(t, "use", func() {
		alloctest.Bound(t, 256<<20, 200, 1, func() {
			_, err := rekindle.Verify(t.Context(), "/db", rekindle.Options{}.OnFS(disk))
			assert.NoError(t, err)
			report, err := rekindle.Salvage(t.Context(), "/db", "/new", rekindle.Options{}.OnFS(disk))
			if assert.NoError(t, err) {
				i := slices.IndexFunc(report.Tables, func(s rekindle.SalvagedTable) bool { return s.ID == 1 })
				assert.GreaterOrEqual(t, report.Tables[i].Rows+report.Tables[i].Invalid, int64(19))
			}
			db, err := rekindle.Open(t.Context(), "/db", rekindle.Options{CheckpointBytes: -1}.OnFS(disk))
			if !assertNamed(t, err) {
				return
			}
			if items, err := rekindle.OpenTable[item](t.Context(), db, "items"); assertNamed(t, err) {
				assertNamed(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
					for _, err := range items.All(tx) {
						if err != nil {
							return err
						}
					}
					return nil
				}))
			}
			_, err = db.CrossCheck(t.Context())
			assert.True(t, err == nil || errors.Is(err, rekindle.ErrCorrupt), "%v", err)
			assertNamed(t, db.Checkpoint(t.Context()))
			assertNamed(t, db.Compact(t.Context()))
			assertNamed(t, db.Close(t.Context()))
		})
	})
}

// assertNamed reports whether there is no error, and wants one to name a file.
func assertNamed(t *testing.T, err error) bool {
	t.Helper()
	var e *rekindle.FileError
	assert.True(t, err == nil || errors.As(err, &e), "%v", err)
	return err == nil
}
