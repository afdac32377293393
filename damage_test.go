package rekindle_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var (
	damageWays   = flag.Int("damage.ways", 1, "ways in which each file is harmed; 0 means all, which takes hours")
	damageRandom = flag.Int("damage.random", 0, "then harm files at random so many times")
	damageSeed   = flag.Uint64("damage.seed", 1, "seed of those at random")
)

// past is what a database held after each of its commits.
type past struct {
	states [][]item       // by commit
	number map[uint64]int // by fingerprint

	versions map[uint64]bool // of all rows, by fingerprint
}

func fingerprint(rows []item) uint64 {
	h := fnv.New64a()
	for _, r := range rows {
		fmt.Fprintf(h, "%d|%s|%d|", r.ID, r.Name, r.Group)
		if r.Note != nil {
			fmt.Fprint(h, *r.Note)
		}
	}
	return h.Sum64()
}

func (p *past) note(rows []item) {
	p.number[fingerprint(rows)] = len(p.states)
	for _, r := range rows {
		p.versions[fingerprint([]item{r})] = true
	}
	p.states = append(p.states, rows)
}

// final is what a database held in the end.
func (p *past) final() []item { return p.states[len(p.states)-1] }

// specimen is a database to harm.
type specimen struct {
	name    string
	disk    *vfs.Mem
	options rekindle.Options
	past    *past
	durable int        // this commit is in a checkpoint
	closed  bool       // so are all
	other   []*vfs.Mem // other databases and other times of this one
	files   []string   // what can be harmed
	strays  map[string]bool
	before  map[string][]byte
}

// ageing makes a database by commits that insert, update, move keys and delete.
type ageing struct {
	t     *testing.T
	db    *rekindle.DB
	items *rekindle.Table[item]
	rows  map[int64]item
	past  *past
	rng   *rand.Rand
}

func (a *ageing) open(fs *vfs.Mem, o rekindle.Options) {
	a.db, a.items = openItems(a.t, fs, o)
}

// commits makes n transactions of one to three statements.
func (a *ageing) commits(n int) {
	for range n {
		update(a.t, a.db, func(tx *rekindle.Tx) {
			for range 1 + a.rng.IntN(3) {
				a.statement(tx)
			}
		})
		rows := slices.Collect(maps.Values(a.rows))
		slices.SortFunc(rows, func(x, y item) int { return int(x.ID - y.ID) })
		a.past.note(rows)
	}
}

const damageIDs = 60

func (a *ageing) statement(tx *rekindle.Tx) {
	id := a.rng.Int64N(damageIDs)
	if _, found := a.rows[id]; found && a.rng.IntN(4) == 0 {
		require.NoError(a.t, a.items.Delete(tx, &item{ID: id}))
		delete(a.rows, id)
		return
	}
	row := item{ID: id, Name: fmt.Sprintf("%d-%d", id, a.rng.IntN(3)), Group: int32(a.rng.IntN(5))}
	if a.rng.IntN(3) == 0 {
		note := strings.Repeat("n", a.rng.IntN(900))
		row.Note = &note
	}
	require.NoError(a.t, a.items.Upsert(tx, &row))
	a.rows[id] = row
}

func age(t *testing.T, seed uint64) *ageing {
	return &ageing{t: t, rows: map[int64]item{}, past: &past{number: map[uint64]int{}, versions: map[uint64]bool{}}, rng: rand.New(rand.NewPCG(seed, 1))}
}

// lostSegments reports whether the beginning of a log was removed. Which of its
// streams that was, and in which life of the database, is not determined: commits
// choose their stream as it comes.
func lostSegments(disk *vfs.Mem, streams int) bool {
	files := disk.Dump()
	for i := range streams {
		if _, there := files[fmt.Sprintf("db/log/%02d-%016x.log", i, 0)]; !there {
			return true
		}
	}
	return false
}

// specimens makes a crashed and a closed database of a strategy, whose logs have
// lost segments, with the same files of other databases and other times.
func specimens(t *testing.T, strategy string, streams int) []*specimen {
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1, IndexStrategy: strategy, LogStreams: streams}.Eager().Uncompacted()
	life := func(seed uint64) (early, crashed, closed *vfs.Mem, a *ageing, durable int) {
		a = age(t, seed)
		fs := vfs.NewMem()
		a.open(fs, o)
		for range 3 {
			a.commits(130)
			require.NoError(t, a.db.Checkpoint(t.Context()))
		}
		early = fs.CrashClone(nil, vfs.Strict)
		require.NoError(t, a.db.Compact(t.Context()))
		require.NoError(t, a.db.Close(t.Context()))
		a.open(fs, o)
		a.commits(90)
		require.NoError(t, a.db.Checkpoint(t.Context()))
		a.commits(90)
		require.NoError(t, a.db.Compact(t.Context()))
		require.NoError(t, a.db.Checkpoint(t.Context()))
		require.NoError(t, a.db.Checkpoint(t.Context()))
		durable = len(a.past.states) - 1
		a.commits(40)
		crashed = fs.CrashClone(nil, vfs.Strict)
		require.True(t, lostSegments(crashed, streams))
		require.NoError(t, a.db.Close(t.Context()))
		return early, crashed, fs, a, durable
	}
	early, crashed, closed, a, durable := life(1)
	foreignEarly, foreign, _, _, _ := life(2)
	name := fmt.Sprintf("%s/%d", strategy, streams)
	return []*specimen{
		{name: name + "/crashed", disk: crashed, options: o, past: a.past, durable: durable, other: []*vfs.Mem{early, closed, foreign, foreignEarly}},
		{name: name + "/closed", disk: closed, options: o, past: a.past, durable: len(a.past.states) - 1, closed: true, other: []*vfs.Mem{early, crashed, foreign, foreignEarly}},
	}
}

// kindOf is the kind of a file, for counting.
func kindOf(name string) string {
	base := path.Base(name)
	switch {
	case base == "CURRENT" || base == "suspects":
		return base
	case strings.HasPrefix(base, "MANIFEST"):
		return "MANIFEST"
	case strings.HasSuffix(base, ".log"):
		return "log segment"
	case strings.HasPrefix(base, "array"):
		return "array file"
	case strings.HasPrefix(base, "index"):
		return "index file"
	}
	return "checkpoint record"
}

// harm is one way to damage a disk.
type harm struct {
	what string
	file string // the one that is changed
	with string // and another one
	do   func(*vfs.Mem)
}

// overwrite gives a file other content.
func overwrite(t *testing.T, disk *vfs.Mem, name string, data []byte) {
	t.Helper()
	if err := disk.Remove("/" + name); err != nil {
		require.NoError(t, disk.MkdirAll("/"+path.Dir(name)))
	}
	f, err := disk.Create("/" + name)
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// harms lists the ways to damage each file of a specimen: small files byte by byte, large ones
// at some places of each sector that is not zero.
func (s *specimen) harms(t *testing.T) (lists [][]harm) {
	s.before = s.disk.Dump()
	for _, name := range slices.Sorted(maps.Keys(s.before)) {
		if !strings.HasSuffix(name, "/") && name != "db/LOCK" {
			s.files = append(s.files, name)
		}
	}
	for _, name := range s.files {
		lists = append(lists, s.bytewise(t, name), s.filewise(t, name))
	}
	return lists
}

func (s *specimen) bytewise(t *testing.T, name string) (list []harm) {
	data := s.before[name]
	add := func(what string, change func([]byte) []byte) {
		list = append(list, harm{what, name, "", func(d *vfs.Mem) { overwrite(t, d, name, change(slices.Clone(data))) }})
	}
	for _, at := range bytesToHarm(data) {
		add(fmt.Sprintf("cut at %d", at), func(b []byte) []byte { return b[:at] })
		for bit := range 8 {
			if len(data) < 4096 || bit == at%8 {
				add(fmt.Sprintf("bit %d of byte %d", bit, at), func(b []byte) []byte { b[at] ^= 1 << bit; return b })
			}
		}
	}
	for at := 0; at < len(data); at += 512 {
		if sector := data[at:min(at+512, len(data))]; strings.Trim(string(sector), "\x00") != "" {
			add(fmt.Sprintf("sector %d zeroed", at/512), func(b []byte) []byte { clear(b[at:min(at+512, len(b))]); return b })
		}
	}
	for _, n := range []int{1, 8, 512, 4096} {
		add(fmt.Sprintf("%d zeros behind", n), func(b []byte) []byte { return append(b, make([]byte, n)...) })
		add(fmt.Sprintf("%d bytes of garbage behind", n), func(b []byte) []byte { return append(b, strings.Repeat("\xa5", n)...) })
	}
	return list
}

// bytesToHarm are the bytes to harm.
func bytesToHarm(data []byte) (list []int) {
	for at := 0; at < len(data); at++ {
		sector := data[at&^511 : min(at|511, len(data))]
		switch {
		case len(data) < 4096:
			list = append(list, at)
		case strings.Trim(string(sector), "\x00") == "":
			list = append(list, at)
			at |= 511
			at += 31 * 512
		case at%512 < 120 && at%3 == 0 || at%37 == 0:
			list = append(list, at)
		}
	}
	return list
}

// filewise loses, copies, exchanges and confuses whole files.
func (s *specimen) filewise(t *testing.T, name string) (list []harm) {
	add := func(what string, do func(d *vfs.Mem)) { list = append(list, harm{what, name, "", do}) }
	add("lost", func(d *vfs.Mem) { require.NoError(t, d.Remove("/"+name)) })
	for i, other := range s.other {
		if content, found := other.Dump()[name]; found && string(content) != string(s.before[name]) {
			add(fmt.Sprintf("replaced by that of disk %d", i), func(d *vfs.Mem) { overwrite(t, d, name, content) })
		}
	}
	for _, second := range s.files {
		if second == name || kindOf(second) != kindOf(name) {
			continue
		}
		add("replaced by "+second, func(d *vfs.Mem) { overwrite(t, d, name, s.before[second]) })
		if second > name {
			list = append(list, harm{"exchanged with " + second, name, second, func(d *vfs.Mem) {
				overwrite(t, d, name, s.before[second])
				overwrite(t, d, second, s.before[name])
			}})
		}
	}
	for _, copied := range copies(name) {
		if _, taken := s.before[copied]; !taken {
			add("copied to "+copied, func(d *vfs.Mem) { overwrite(t, d, copied, s.before[name]) })
		}
	}
	return list
}

// copies are names that a copy of a file could confuse somebody with.
func copies(name string) []string {
	dir, base := path.Split(name)
	switch kindOf(name) {
	case "CURRENT":
		return []string{name + ".tmp"}
	case "MANIFEST":
		return []string{dir + "MANIFEST-000099", dir + "MANIFEST-000001"}
	case "log segment":
		var first uint64
		if _, err := fmt.Sscanf(base[3:], "%x", &first); err != nil {
			return nil
		}
		return []string{fmt.Sprintf("%s%s-%016x.log", dir, base[:2], first+64<<10), dir + "00-0000000000000000.log", fmt.Sprintf("%s%s-%016x.log", dir, base[:2], first+640<<10)}
	}
	return []string{"db/ckpt/000099/" + base, "db/ckpt/000099", "db/ckpt/" + base}
}

// outcomes counts what came of the harms, by kind of file.
type outcomes map[string]map[string]int

func (o outcomes) add(kind, outcome string) {
	if o[kind] == nil {
		o[kind] = map[string]int{}
	}
	o[kind][outcome]++
}

func (o outcomes) log(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(o)) {
		t.Logf("%s: %v", kind, o[kind])
	}
}

// TestDamage harms every file of crashed and of closed databases of all strategies
// in many ways. What comes of it is the right content, an older or slower
// substitute with the right content and a word about it, or an error that names
// the file.
func TestDamage(t *testing.T) {
	total := outcomes{}
	for i, strategy := range rekindle.IndexStrategies() {
		if testing.Short() && i > 1 {
			break
		}
		for _, s := range specimens(t, strategy, 1+i%2) {
			t.Run(s.name, func(t *testing.T) {
				report, err := rekindle.Verify(t.Context(), "/db", s.options.OnFS(s.disk))
				require.NoError(t, err)
				s.noteStrays(t, report)
				require.Len(t, s.past.final(), int(report.Rows)-1, "and the row of the table")
				lists := s.harms(t)
				rng := rand.New(rand.NewPCG(*damageSeed, 2))
				tried, ways := 0, 0
				for _, list := range lists {
					ways += len(list)
					for _, h := range some(list, *damageWays, rng) {
						s.try(t, h, total)
						tried++
					}
				}
				for range *damageRandom {
					list := lists[rng.IntN(len(lists))]
					s.try(t, &list[rng.IntN(len(list))], total)
					tried++
				}
				t.Logf("%d of %d ways, with seed %d", tried, ways, *damageSeed)
			})
		}
	}
	total.log(t)
}

// some chooses n of the ways to harm a file, or all if n is 0.
func some(list []harm, n int, rng *rand.Rand) (chosen []*harm) {
	step := 1
	if n > 0 {
		step = max(1, len(list)/n)
	}
	for i := rng.IntN(step); i < len(list); i += step {
		chosen = append(chosen, &list[i])
	}
	return chosen
}

// try harms a copy of the disk and looks at what is left of it.
func (s *specimen) try(t *testing.T, h *harm, total outcomes) {
	harmed := s.disk.CrashClone(nil, vfs.Keep)
	h.do(harmed)
	guarded(t, h, func() string { s.verify(t, h, harmed); s.salvage(t, h, harmed); return "" })
	for _, verify := range []bool{true, false} {
		o := s.options
		o.VerifyOnOpen = verify
		disk := harmed.CrashClone(nil, vfs.Keep)
		outcome := guarded(t, h, func() string { return s.outcome(t, h, disk, o) })
		if !verify {
			total.add(kindOf(h.file), outcome)
		}
	}
}

// verify looks for the damage.
func (s *specimen) verify(t *testing.T, h *harm, disk *vfs.Mem) {
	before := disk.Dump()
	report, err := rekindle.Verify(t.Context(), "/db", rekindle.Options{}.OnFS(disk))
	if err != nil {
		t.Errorf("%s, %s: verify: %v", h.file, h.what, err)
		return
	}
	if !maps.EqualFunc(before, disk.Dump(), func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("%s, %s: verify has changed files", h.file, h.what)
	}
	if s.unneeded(h) || s.harmless(h.file, disk) || s.cutsEnd(h) {
		return
	}
	fresh := slices.DeleteFunc(slices.Clone(report.Findings), func(f rekindle.Finding) bool {
		return f.Kind == rekindle.StrayFile && s.strays[strings.TrimPrefix(f.Path, "/")]
	})
	if len(fresh) == 0 {
		t.Errorf("%s, %s: not found", h.file, h.what)
	}
	if !report.Damage() && kindOf(h.file) != "log segment" && !strings.Contains(h.what, "copied") {
		t.Errorf("%s, %s: found to be no damage: %v", h.file, h.what, fresh)
	}
}

// noteStrays notes which files of the specimen are not needed: those that a crash
// has kept from being deleted. Nothing else is found in it.
func (s *specimen) noteStrays(t *testing.T, report *rekindle.VerifyReport) {
	s.strays = map[string]bool{}
	for _, f := range report.Findings {
		require.Equal(t, rekindle.StrayFile, f.Kind, f.String())
		s.strays[strings.TrimPrefix(f.Path, "/")] = true
	}
	require.False(t, s.closed && len(s.strays) > 0)
	for name := range s.disk.Dump() {
		if kindOf(name) != "log segment" {
			continue
		}
		without := s.disk.CrashClone(nil, vfs.Keep)
		require.NoError(t, without.Remove("/"+name))
		report, err := rekindle.Verify(t.Context(), "/db", s.options.OnFS(without))
		require.NoError(t, err)
		s.strays[name] = !report.Damage()
	}
}

// cutsEnd reports whether a harm takes something from the end of a log that was
// not closed, which nobody can know.
func (s *specimen) cutsEnd(h *harm) bool {
	bit := strings.Contains(h.what, "bit") || strings.Contains(h.what, "lost")
	return !s.closed && kindOf(h.file) == "log segment" && !bit && !slices.ContainsFunc(s.files, func(name string) bool {
		return path.Base(name)[:2] == path.Base(h.file)[:2] && name > h.file && strings.Trim(string(s.before[name]), "\x00") != ""
	})
}

// unneeded reports whether a harm changes nothing but strays.
func (s *specimen) unneeded(h *harm) bool {
	return s.strays[h.file] && (h.with == "" || s.strays[h.with])
}

// harmless reports whether a segment of the log has changed only where nothing is
// kept: where there were zeros.
func (s *specimen) harmless(name string, disk *vfs.Mem) bool {
	if kindOf(name) != "log segment" {
		return false
	}
	before, after := s.before[name], disk.Dump()[name]
	for at := 0; at < max(len(before), len(after)); at += 512 {
		was, is := sectorAt(before, at), sectorAt(after, at)
		if was != is && was != "" {
			return false
		}
	}
	return true
}

// sectorAt returns a sector without the zeros at its end.
func sectorAt(data []byte, at int) string {
	return strings.TrimRight(string(data[min(at, len(data)):min(at+512, len(data))]), "\x00")
}

// salvage extracts what there is into a new database: nothing that never was, and
// all that is not damaged.
func (s *specimen) salvage(t *testing.T, h *harm, disk *vfs.Mem) {
	wrong := func(format string, args ...any) {
		t.Errorf("%s, %s: salvage: %s", h.file, h.what, fmt.Sprintf(format, args...))
	}
	before := disk.Dump()
	report, err := rekindle.Salvage(t.Context(), "/db", "/new", rekindle.Options{CheckpointBytes: -1}.OnFS(disk))
	if err != nil {
		wrong("%v", err)
		return
	}
	maps.DeleteFunc(before, func(name string, _ []byte) bool { return !strings.HasPrefix(name, "db/") })
	for name, content := range disk.Dump() {
		if strings.HasPrefix(name, "db/") && string(before[name]) != string(content) {
			wrong("%s has changed", name)
		}
	}
	db, err := rekindle.Open(t.Context(), "/new", rekindle.Options{CheckpointBytes: -1}.OnFS(disk))
	require.NoError(t, err)
	rows, err := s.readAll(t, db)
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	different, invented := s.compare(rows)
	whole := kindOf(h.file) != "log segment" || s.unneeded(h)
	switch {
	case invented > 0:
		wrong("%d rows that never were", invented)
	case different > 0 && report.Complete() && !s.cutsEnd(h):
		wrong("%d rows differ, and the report does not say so", different)
	case whole && different > 0 && report.Tables[0].Doubtful == 0:
		wrong("%d rows differ without damage to the log: %+v", different, report)
	case strings.Contains(h.what, "bit") && different > 3 && !whole || strings.Contains(h.what, "sector") && different > 3 && !whole:
		wrong("%d rows differ, more than one commit changes: %+v", different, report)
	}
}

// compare counts the rows that are missing, superfluous or others than in the end,
// and those that have never been so.
func (s *specimen) compare(rows []item) (different, invented int) {
	final := map[int64]uint64{}
	for _, r := range s.past.final() {
		final[r.ID] = fingerprint([]item{r})
	}
	for _, r := range rows {
		print := fingerprint([]item{r})
		if !s.past.versions[print] {
			invented++
		}
		if final[r.ID] != print {
			different++
		} else {
			delete(final, r.ID)
		}
	}
	for id := range final {
		if !slices.ContainsFunc(rows, func(r item) bool { return r.ID == id }) {
			different++
		}
	}
	return different, invented
}

// damageAllocates bounds what a small database may allocate, however it is harmed.
const damageAllocates = 128 << 20

// guarded runs f, which may neither hang nor ask for much memory.
func guarded(t *testing.T, h *harm, f func() string) (outcome string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	watchdog := time.AfterFunc(time.Minute, func() {
		panic(fmt.Sprintf("%s, %s: hangs", h.file, h.what))
	})
	defer watchdog.Stop()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s, %s: panic: %v", h.file, h.what, r)
			panic(r)
		}
	}()
	outcome = f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > damageAllocates {
		t.Errorf("%s, %s: %d bytes allocated", h.file, h.what, n)
	}
	return outcome
}

// outcome opens a harmed disk and reads everything.
func (s *specimen) outcome(t *testing.T, h *harm, disk *vfs.Mem, o rekindle.Options) string {
	fail := func(format string, args ...any) string {
		t.Errorf("%s, %s (verify %v): %s", h.file, h.what, o.VerifyOnOpen, fmt.Sprintf(format, args...))
		return "WRONG"
	}
	before := disk.Dump()
	db, err := rekindle.Open(t.Context(), "/db", o.OnFS(disk))
	if err != nil {
		if !typedDamage(err) {
			return fail("open: %v", err)
		}
		if !maps.EqualFunc(before, disk.Dump(), func(a, b []byte) bool { return string(a) == string(b) }) {
			return fail("a failed open has changed files")
		}
		return "refused"
	}
	report := db.RecoveryReport()
	said := len(report.Fallbacks) > 0 || report.BytesDropped > 0
	rows, err := s.readAll(t, db)
	switch {
	case err != nil && !typedDamage(err):
		_ = db.Close(t.Context())
		return fail("read: %v", err)
	case err != nil:
		if err := db.Close(t.Context()); err != nil && !typedDamage(err) {
			return fail("close: %v", err)
		}
		if o.VerifyOnOpen && kindOf(h.file) != "log segment" {
			return fail("found late: %v", err)
		}
		return "error of the call"
	}
	commit, known := s.past.number[fingerprint(rows)]
	switch {
	case !known:
		_ = db.Close(t.Context())
		return fail("content that never was: %d rows", len(rows))
	case commit < s.durable:
		_ = db.Close(t.Context())
		return fail("content of commit %d, at least %d is durable; fallbacks %v", commit, s.durable, report.Fallbacks)
	}
	older := commit != len(s.past.states)-1
	if older && kindOf(h.file) != "log segment" {
		_ = db.Close(t.Context())
		return fail("content of commit %d of %d without damage to the log", commit, len(s.past.states)-1)
	}
	if reason := s.goesOn(t, db, disk, o, rows); reason != "" {
		return fail("afterwards: %s", reason)
	}
	switch {
	case older && said:
		return "torn end, said"
	case older:
		return "torn end"
	case said:
		return "falls back"
	}
	return "right"
}

// readAll reads all rows by scan and by every index, and checks that the ways
// agree.
func (s *specimen) readAll(t *testing.T, db *rekindle.DB) (rows []item, err error) {
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	if err != nil {
		return nil, err
	}
	err = db.View(t.Context(), func(tx *rekindle.Tx) error {
		for row, err := range items.All(tx) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		for _, index := range []string{"name", "group"} {
			var byIndex []item
			for row, err := range items.Scan(tx, rekindle.Query{Index: index}) {
				if err != nil {
					return err
				}
				byIndex = append(byIndex, row)
			}
			slices.SortFunc(byIndex, func(x, y item) int { return int(x.ID - y.ID) })
			if fingerprint(byIndex) != fingerprint(rows) {
				return fmt.Errorf("index %s finds %d rows, a scan %d", index, len(byIndex), len(rows))
			}
		}
		for _, row := range rows {
			got := item{Name: row.Name}
			if err := items.GetBy(tx, "name", &got); err != nil {
				return err
			}
			if got.ID != row.ID {
				return errors.New("name finds another row")
			}
		}
		return nil
	})
	return rows, err
}

// goesOn writes, closes and opens again: what was harmed may be refused then, but
// does no harm.
func (s *specimen) goesOn(t *testing.T, db *rekindle.DB, disk *vfs.Mem, o rekindle.Options, rows []item) string {
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	if err != nil {
		return err.Error()
	}
	added := item{ID: damageIDs, Name: "added"}
	err = db.Update(t.Context(), func(tx *rekindle.Tx) error { return items.Insert(tx, &added) })
	if err != nil && !typedDamage(err) && !errors.Is(err, rekindle.ErrNoSpace) {
		return fmt.Sprintf("insert: %v", err)
	}
	want := fingerprint(rows)
	if err == nil {
		want = fingerprint(append(slices.Clone(rows), added))
	}
	if err := db.Close(t.Context()); err != nil && !typedDamage(err) {
		return fmt.Sprintf("close: %v", err)
	}
	db, err = rekindle.Open(t.Context(), "/db", o.OnFS(disk))
	if err != nil {
		if typedDamage(err) {
			return ""
		}
		return fmt.Sprintf("open again: %v", err)
	}
	rows, err = s.readAll(t, db)
	if err := errors.Join(db.Close(t.Context())); err != nil && !typedDamage(err) {
		return fmt.Sprintf("close again: %v", err)
	}
	switch {
	case err != nil && !typedDamage(err):
		return fmt.Sprintf("read again: %v", err)
	case err == nil && fingerprint(rows) != want:
		return "other content after opening again"
	}
	return ""
}

// typedDamage reports whether an error says which file is damaged.
func typedDamage(err error) bool {
	var file *rekindle.FileError
	return errors.As(err, &file) && file.Path != "" && !errors.Is(err, context.DeadlineExceeded)
}

// TestLostRecordProvesEnd: of a closed database the last record of the manifest
// and the end of the log are lost. The record in the checkpoint's folder says that
// there was more.
func TestLostRecordProvesEnd(t *testing.T) {
	fs := vfs.NewMem()
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1}
	db, items := openItems(t, fs, o)
	var early map[string][]byte
	for i := range int64(3) {
		require.NoError(t, db.Checkpoint(t.Context()))
		early = fs.Dump()
		update(t, db, func(tx *rekindle.Tx) { require.NoError(t, items.Insert(tx, &item{ID: i, Name: fmt.Sprint(i)})) })
	}
	require.NoError(t, db.Close(t.Context()))
	for name, content := range early {
		if kind := kindOf(name); kind == "MANIFEST" || kind == "log segment" {
			overwrite(t, fs, name, content)
		}
	}
	_, err := rekindle.Open(t.Context(), "/db", o.OnFS(fs))
	require.ErrorIs(t, err, rekindle.ErrCorrupt)
	report, err := rekindle.Verify(t.Context(), "/db", o.OnFS(fs))
	require.NoError(t, err)
	require.True(t, report.Damage())
}

// TestSegmentOfAnotherCopy: copies of a database that have gone on apart share
// everything but the salts of their lives. VerifyOnOpen finds a segment of the
// other one wherever it lies.
func TestSegmentOfAnotherCopy(t *testing.T) {
	o := rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: -1}.Uncompacted()
	life := func(disk *vfs.Mem, name string) {
		db, items := openItems(t, disk, o)
		for i := range int64(400) {
			update(t, db, func(tx *rekindle.Tx) {
				require.NoError(t, items.Upsert(tx, &item{ID: i, Name: fmt.Sprintf("%s%0300d", name, i)}))
			})
		}
		require.NoError(t, db.Close(t.Context()))
	}
	ours := vfs.NewMem()
	life(ours, "before")
	theirs := ours.CrashClone(nil, vfs.Strict)
	life(ours, "ours")
	life(theirs, "theirs")
	kept, mixed := ours.Dump(), 0
	for name, data := range theirs.Dump() {
		same, shared := kept[name]
		if !strings.HasPrefix(name, "db/log/0") || !shared || bytes.Equal(data[:512], same[:512]) {
			continue // of no other life
		}
		disk := ours.CrashClone(nil, vfs.Strict)
		overwrite(t, disk, name, data)
		verifying := o
		verifying.VerifyOnOpen = true
		_, err := rekindle.Open(t.Context(), "/db", verifying.OnFS(disk))
		require.ErrorIs(t, err, rekindle.ErrForeignFile, name)
		mixed++
	}
	require.Greater(t, mixed, 2)
}
