package rekindle_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// salvaged makes a new database of what is left on a disk and returns its items.
func salvaged(t *testing.T, disk *vfs.Mem) ([]item, *rekindle.SalvageReport) {
	t.Helper()
	into := disk.CrashClone(nil, vfs.Keep)
	report, err := rekindle.Salvage(t.Context(), "/db", "/new", rekindle.Options{CheckpointBytes: -1}.OnFS(into))
	require.NoError(t, err)
	db, err := rekindle.Open(t.Context(), "/new", rekindle.Options{CheckpointBytes: -1}.OnFS(into))
	require.NoError(t, err)
	_, err = db.CrossCheck(t.Context())
	require.NoError(t, err)
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err)
	rows := allItems(t, db, items)
	require.NoError(t, db.Close(t.Context()))
	return rows, report
}

// removeAll removes all files whose names begin so.
func removeAll(t *testing.T, disk *vfs.Mem, prefixes ...string) {
	t.Helper()
	for name := range disk.Dump() {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, "/") {
				require.NoError(t, disk.Remove("/"+name))
			}
		}
	}
}

// TestSalvageWithoutCheckpoints: the log alone has everything, and what only the
// checkpoints have is in two places.
func TestSalvageWithoutCheckpoints(t *testing.T) {
	for what, lost := range map[string][]string{
		"nothing":                    nil,
		"CURRENT":                    {"db/CURRENT"},
		"manifest":                   {"db/MANIFEST"},
		"CURRENT and manifest":       {"db/CURRENT", "db/MANIFEST"},
		"records":                    {"db/ckpt/000001/record", "db/ckpt/000002/record"},
		"checkpoints":                {"db/ckpt"},
		"all but the log":            {"db/CURRENT", "db/MANIFEST", "db/ckpt"},
		"all but the log and arrays": {"db/CURRENT", "db/MANIFEST", "db/ckpt/000001/record", "db/ckpt/000002/record"},
	} {
		disk, want := lived(t)
		removeAll(t, disk, lost...)
		rows, report := salvaged(t, disk)
		require.Equal(t, want, rows, what)
		require.True(t, report.Complete(), "%s: %+v", what, report)
		require.Equal(t, what == "nothing" || what == "records", len(report.Findings) == 0, what)
	}
}

// TestSalvageEveryBit flips each bit of a round: only what is in the record is
// lost with it.
func TestSalvageEveryBit(t *testing.T) {
	const (
		log    = "/db/log/00-0000000000000000.log"
		sector = 33 * 512
		frame  = sector + 80
		record = frame + 40
	)
	disk, want := lived(t)
	removeAll(t, disk, "db/CURRENT", "db/MANIFEST", "db/ckpt")
	end := sector + len(strings.TrimRight(string(disk.Dump()[log[1:]][sector:sector+512]), "\x00"))
	require.Greater(t, end, record+24)
	step := 5
	if *damageWays == 0 {
		step = 1
	}
	for bit := sector * 8; bit < end*8; bit += step {
		harmed := disk.CrashClone(nil, vfs.Keep)
		alter(t, harmed, log, func(b []byte) []byte { b[bit/8] ^= 1 << (bit % 8); return b })
		rows, report := salvaged(t, harmed)
		lost := 0
		if bit >= record*8 {
			lost = 1
		}
		require.Len(t, rows, len(want)-lost, "bit %d of byte %d", bit%8, bit/8-sector)
		require.Subset(t, want, rows)
		require.Len(t, report.Findings, 2, "CURRENT and the place")
		require.EqualValues(t, lost, report.CommitsLost)
		require.Equal(t, lost == 0, report.Complete())
	}
}

// TestSalvageCompacted: where segments were removed the arrays tell which rows were
// deleted, and what tells about the arrays is in two places.
func TestSalvageCompacted(t *testing.T) {
	for i, strategy := range rekindle.IndexStrategies() {
		for _, s := range specimens(t, strategy, 1+i%2) {
			removeAll(t, s.disk, "db/CURRENT", "db/MANIFEST")
			rows, report := salvaged(t, s.disk)
			require.Equal(t, fingerprint(s.past.final()), fingerprint(rows), s.name)
			require.True(t, report.Complete(), "%s: %+v", s.name, report)
			require.NotZero(t, report.Checkpoint)
		}
	}
}

// TestSalvageDefinition: the definition of a table is not only in its row.
func TestSalvageDefinition(t *testing.T) {
	disk, want := lived(t)
	alter(t, disk, "/db/log/00-0000000000000000.log", func(b []byte) []byte { clear(b[512+80 : 1024]); return b })
	rows, report := salvaged(t, disk)
	require.Equal(t, want, rows)
	require.Equal(t, "items", report.Tables[0].Name)

	removeAll(t, disk, "db/CURRENT", "db/MANIFEST", "db/ckpt")
	into := disk.CrashClone(nil, vfs.Keep)
	report, err := rekindle.Salvage(t.Context(), "/db", "/new", rekindle.Options{}.OnFS(into))
	require.NoError(t, err)
	require.Len(t, report.Tables, 1)
	require.Empty(t, report.Tables[0].Name)
	require.EqualValues(t, len(want), report.Tables[0].Invalid)
	require.False(t, report.Complete())
}

// TestSalvageParts cuts a transaction of several parts at some sectors: without
// its last part it counts for nothing, without another one in part.
func TestSalvageParts(t *testing.T) {
	fs := vfs.NewMem()
	db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1})
	note := strings.Repeat("n", 4000)
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: -1, Name: "before"})) })
	update(t, db, func(tx *rekindle.Tx) {
		for i := range int64(40) {
			require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i), Note: &note}))
		}
	})
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 99, Name: "after"})) })
	disk := fs.CrashClone(nil, vfs.Keep)
	require.NoError(t, db.Close(t.Context()))
	outcomes := map[int]bool{}
	last := "" // the segment that the transaction ends in
	for name, content := range disk.Dump() {
		if strings.HasSuffix(name, ".log") && strings.Trim(string(content), "\x00") != "" {
			last = max(last, name)
		}
	}
	for name, content := range disk.Dump() {
		for at := 0; strings.HasSuffix(name, ".log") && at < len(content); at += 13 * 512 {
			for _, cut := range []bool{false, true} {
				harmed := disk.CrashClone(nil, vfs.Keep)
				alter(t, harmed, "/"+name, func(b []byte) []byte {
					if cut {
						clear(b[at:])
					}
					clear(b[at : at+512])
					return b
				})
				rows, report := salvaged(t, harmed)
				n := 0
				for _, row := range rows {
					if row.ID >= 0 && row.ID < 40 {
						require.Equal(t, note, *row.Note)
						n++
					}
				}
				outcomes[n] = true
				if cut && name == last {
					require.Contains(t, []int{0, 40}, n, "what commits it is there or not")
				}
				if n > 0 && n < 40 {
					require.False(t, report.Complete(), "%d of 40 rows", n)
				}
			}
		}
	}
	require.Contains(t, outcomes, 0)
	require.Contains(t, outcomes, 39)
	require.Contains(t, outcomes, 40)
}

// TestSalvageConflict: where a delete is lost, the row whose key was given to
// another one gives way to it.
func TestSalvageConflict(t *testing.T) {
	fs := vfs.NewMem()
	db, items := openItems(t, fs, rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1})
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 1, Name: "x"})) })
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Delete(tx, &item{ID: 1})) })
	update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: 2, Name: "x"})) })
	disk := fs.CrashClone(nil, vfs.Keep)
	require.NoError(t, db.Close(t.Context()))
	alter(t, disk, "/db/log/00-0000000000000000.log", func(b []byte) []byte { clear(b[3*512 : 4*512]); return b })
	rows, report := salvaged(t, disk)
	require.Equal(t, []item{{ID: 2, Name: "x"}}, rows)
	require.EqualValues(t, 1, report.CommitsLost)
	require.EqualValues(t, 1, report.Tables[0].Conflicts)
	require.Len(t, report.Conflicts, 1)
	require.Equal(t, "name", report.Conflicts[0].Index)
}

// TestSalvageDiverged exchanges segments of two lives that began with the same
// disk: nothing of the one gets into the other.
func TestSalvageDiverged(t *testing.T) {
	disk, _ := lived(t)
	life := func(name string) (*vfs.Mem, []item) {
		fs := disk.CrashClone(nil, vfs.Keep)
		db, items := openItems(t, fs, rekindle.Options{CheckpointBytes: -1})
		for i := range int64(150) {
			update(t, db, func(tx *rekindle.Tx) {
				require.NoError(t, items.Insert(tx, &item{ID: 1000 + i, Name: fmt.Sprint(name, i)}))
			})
		}
		rows := allItems(t, db, items)
		crashed := fs.CrashClone(nil, vfs.Keep)
		require.NoError(t, db.Close(t.Context()))
		return crashed, rows
	}
	ours, want := life("ours")
	theirs, others := life("theirs")
	content := theirs.Dump()
	for name := range maps.Clone(ours.Dump()) {
		if !strings.HasSuffix(name, ".log") || strings.Trim(string(content[name]), "\x00") == "" {
			continue
		}
		mixed := ours.CrashClone(nil, vfs.Keep)
		alter(t, mixed, "/"+name, func([]byte) []byte { return content[name] })
		rows, report := salvaged(t, mixed)
		if len(report.Findings) == 0 {
			require.Equal(t, want, rows, "the two begin with the same segment")
			continue
		}
		ofOurs, ofTheirs := len(common(rows, want)), len(common(rows, others))
		require.Contains(t, []int{ofOurs, ofTheirs}, len(rows), name)
	}
}

// common returns the rows that both have.
func common(a, b []item) (both []item) {
	in := map[uint64]bool{}
	for _, row := range b {
		in[fingerprint([]item{row})] = true
	}
	for _, row := range a {
		if in[fingerprint([]item{row})] {
			both = append(both, row)
		}
	}
	return both
}

// TestSalvageLostCommits: commits that are known to have been, and that neither
// the log nor the array which serves has, are counted although another table's
// array is newer.
func TestSalvageLostCommits(t *testing.T) {
	fs := vfs.NewMem()
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1}
	db, items := openItems(t, fs, o)
	insert := func(id int64) {
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: id, Name: fmt.Sprint(id)})) })
	}
	insert(1)
	require.NoError(t, db.Checkpoint(t.Context()))
	insert(2)
	require.NoError(t, db.Close(t.Context()))
	removeAll(t, fs, "db/ckpt/000002/array-1.ria")
	alter(t, fs, "/db/log/00-0000000000000000.log", func(b []byte) []byte { clear(b[3*512 : 4*512]); return b })
	rows, report := salvaged(t, fs)
	require.Equal(t, []item{{ID: 1, Name: "1"}}, rows)
	require.EqualValues(t, 1, report.CommitsLost)
	require.False(t, report.Complete())
}

// TestSalvageOtherDatabase: the log is that of another database. That one is
// extracted, and the report does not hide the one whose manifest is there.
func TestSalvageOtherDatabase(t *testing.T) {
	disk, _ := lived(t)
	other, want := lived(t)
	removeAll(t, disk, "db/log/", "db/ckpt/")
	for name, content := range other.Dump() {
		if strings.HasPrefix(name, "db/log/") && !strings.HasSuffix(name, "/") {
			overwrite(t, disk, name, content)
			overwrite(t, disk, strings.Replace(name, "00-", "00-1", 1), content) // a majority
		}
	}
	rows, report := salvaged(t, disk)
	require.Equal(t, want, rows)
	require.False(t, report.Complete())
	require.Contains(t, fmt.Sprint(report.Findings), "foreign /db/MANIFEST-")
}
