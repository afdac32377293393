package recovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// Wreck is what can be read of a damaged database. Nothing in it is trusted but
// what a checksum proves.
//
// Where the array of a table can be read, it says which rows there were at its
// checkpoint and where they are; the log behind it says what came later. For a
// table, or a page of its array, of which no checkpoint can be read, the log
// alone decides: the newest record of a row counts. Where segments are missing
// in that log, a delete may be missing too, so rows older than that are doubtful.
type Wreck struct {
	Header      Header // of the database it was
	Checkpoint  uint64 // the newest one of which an array can be read, 0 for none
	Findings    []Finding
	Survey      logstream.Survey
	Definitions map[rowid.Table]json.RawMessage // as the checkpoints have them

	files       *vfs.Watched // refusals are no damage
	dir         string
	archive     *logstream.Archive
	checkpoints []Checkpoint // the newest first
	bases       map[rowid.Table]*base
	changes     map[rowid.Table][]logstream.Change
}

// base is the array of a table as a checkpoint describes it.
type base struct {
	cts   uint64
	image *indirection.Image
	bad   map[uint64]bool // pages that cannot be read
}

// OpenWreck reads what is left of a database that is not open, and changes
// nothing. It keeps some 50 bytes in memory for every record of the log that may
// matter.
func OpenWreck(ctx context.Context, files vfs.FS, dir string) (_ *Wreck, err error) {
	w := &Wreck{
		files: vfs.Watch(files, vfs.Refused), dir: dir,
		Definitions: map[rowid.Table]json.RawMessage{},
		bases:       map[rowid.Table]*base{},
		changes:     map[rowid.Table][]logstream.Change{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	for _, step := range []func(context.Context) error{w.identify, w.openBases, w.readLog} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("salvage %s: %w", dir, errors.Join(err, w.Refused()))
		}
	}
	return w, nil
}

// Refused returns an error if something was taken for lost that the system refused to
// read for reasons of its own.
func (w *Wreck) Refused() error { return w.files.Err() }

// Close closes the files.
func (w *Wreck) Close() error {
	var errs []error
	for _, b := range w.bases {
		errs = append(errs, b.image.Close())
	}
	clear(w.bases)
	if w.archive != nil {
		w.archive.Close()
	}
	return errors.Join(errs...)
}

func (w *Wreck) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *Wreck) note(err error, effect string) {
	w.Findings = append(w.Findings, findingOf(err, w.dir, effect))
}

// identify finds out which database it was, by what most of its files say, and
// collects what manifests and records tell of its checkpoints.
func (w *Wreck) identify(context.Context) error {
	if _, err := readManifest(w.files, w.dir, allRecords); err != nil {
		w.note(missingCurrent(err, w.dir), "all manifests and records of checkpoints are read")
	}
	found, err := w.readRecords()
	if err != nil {
		return err
	}
	votes, err := w.logIdentities()
	if err != nil {
		return err
	}
	for _, r := range found {
		if r.Header != nil {
			votes[identityOf(r.Header)]++
		}
	}
	most := 0
	for id, n := range votes {
		if n > most || n == most && string(id.DatabaseID[:]) > string(w.Header.DatabaseID[:]) {
			most, w.Header = n, id.header()
		}
	}
	if most == 0 {
		return &fault.File{Kind: fault.ErrMissingFile, Path: w.dir, Reason: "no file of a database that tells which one it was"}
	}
	for _, r := range found {
		w.adopt(&r)
	}
	w.noteForeign(found)
	slices.SortStableFunc(w.checkpoints, func(a, b Checkpoint) int { return cmp.Compare(b.Number, a.Number) })
	return nil
}

func identityOf(h *Header) logIdentity {
	return logIdentity{logstream.Identity{DatabaseID: h.DatabaseID, Streams: h.LogStreams, SegmentBytes: h.SegmentBytes}}
}

// logIdentity is what headers of manifests and of segments have in common.
type logIdentity struct{ logstream.Identity }

func (i logIdentity) header() Header {
	return Header{Format: FormatVersion, DatabaseID: i.DatabaseID, LogStreams: i.Streams, SegmentBytes: i.SegmentBytes}
}

// logIdentities counts what the headers of segments say.
func (w *Wreck) logIdentities() (map[logIdentity]int, error) {
	votes := map[logIdentity]int{}
	names, err := w.files.List(w.path(LogDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		if id, ok := logstream.Identify(w.files, w.path(path.Join(LogDir, name))); ok {
			votes[logIdentity{id}]++
		}
	}
	return votes, nil
}

// readRecords reads all manifests and all records of checkpoints.
func (w *Wreck) readRecords() (found []remains, err error) {
	names, err := w.files.List(w.dir)
	if err != nil {
		return nil, err
	}
	slices.Reverse(names) // the newest first
	for _, name := range names {
		if strings.HasPrefix(name, manifestPrefix) {
			found = w.readRecord(found, name)
		}
	}
	folders, err := w.files.List(w.path(checkpointDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, folder := range folders {
		name := path.Join(checkpointDir, folder, recordName)
		if _, err := w.files.Stat(w.path(name)); err == nil {
			found = w.readRecord(found, name)
		}
	}
	return found, nil
}

func (w *Wreck) readRecord(found []remains, name string) []remains {
	data, err := readSmall(w.files, w.path(name), maxRemainsBytes)
	if err != nil {
		w.note(err, "")
		return found
	}
	r := readRemains(w.path(name), data)
	for _, flaw := range r.Flaws {
		w.note(flaw, "what it said of a checkpoint is lost")
	}
	return append(found, r)
}

// adopt takes the checkpoints of a manifest, unless it is of another database.
func (w *Wreck) adopt(r *remains) {
	if r.Header == nil || identityOf(r.Header) != identityOf(&w.Header) {
		return
	}
	if w.Header.Strategy == "" {
		w.Header.Strategy = r.Header.Strategy
	}
	for _, c := range r.Checkpoints {
		w.checkpoints = append(w.checkpoints, c)
		for _, t := range c.Tables {
			if w.Definitions[t.Table] == nil && t.Definition != nil {
				w.Definitions[t.Table] = t.Definition
			}
		}
	}
}

// noteForeign tells of manifests and records of another database: perhaps it is
// that which was meant.
func (w *Wreck) noteForeign(found []remains) {
	for _, r := range found {
		if r.Header != nil && identityOf(r.Header) != identityOf(&w.Header) {
			w.note(&fault.File{Kind: fault.ErrForeignFile, Path: r.Path, Reason: fmt.Sprintf("database id %x, most files have %x", r.Header.DatabaseID, w.Header.DatabaseID)},
				"nothing of that database is extracted")
		}
	}
}

// openBases chooses for each table the newest checkpoint of which its whole array
// can be read, or else the newest of which something can.
func (w *Wreck) openBases(ctx context.Context) error {
	tried := map[indirection.Generation]bool{}
	for i := range w.checkpoints {
		c := &w.checkpoints[i]
		for _, t := range c.Tables {
			g := t.Generation
			g.Path = arrayName(g.Number, t.Table)
			if b := w.bases[t.Table]; b != nil && len(b.bad) == 0 || tried[g] {
				continue
			}
			tried[g] = true
			if err := w.tryBase(ctx, c, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Wreck) tryBase(ctx context.Context, c *Checkpoint, t TableImage) error {
	at := func(generation uint64) string { return w.path(arrayName(generation, t.Table)) }
	image, err := indirection.OpenImage(w.files, t.Generation, at, w.Header.DatabaseID)
	if err != nil {
		w.note(err, fmt.Sprintf("checkpoint %d does not say where the rows of table %d are", c.Number, t.Table))
		return nil
	}
	b := &base{cts: c.CTS, image: image, bad: map[uint64]bool{}}
	var page [indirection.PageSlots]indirection.Word
	for p := range image.Pages() {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, image.Close())
		}
		if _, err := image.ReadPage(p, &page); err != nil {
			b.bad[p] = true
			w.note(err, fmt.Sprintf("checkpoint %d does not say where some rows of table %d are", c.Number, t.Table))
		}
	}
	old := w.bases[t.Table]
	if old != nil && len(old.bad) <= len(b.bad) {
		return image.Close()
	}
	w.bases[t.Table] = b
	w.Checkpoint = max(w.Checkpoint, c.Number)
	if old != nil {
		return old.image.Close()
	}
	return nil
}

// readLog collects the records that matter.
func (w *Wreck) readLog(ctx context.Context) (err error) {
	var newest *Checkpoint
	if len(w.checkpoints) > 0 {
		newest = &w.checkpoints[0]
	}
	if w.archive, err = logstream.OpenArchive(scanOptions(w.files, w.dir, &w.Header, newest), nil); err != nil {
		return err
	}
	survey, err := w.archive.Survey(ctx, w.collect)
	if err != nil {
		return err
	}
	w.Survey = *survey
	for _, f := range slices.Concat(w.archive.Flaws(), survey.Damage) {
		w.note(f, "commits may be lost")
	}
	for _, f := range survey.Torn {
		torn := findingOf(f, "", "")
		torn.Kind = Torn
		w.Findings = append(w.Findings, torn)
	}
	for _, f := range w.archive.Missing() {
		w.note(f, "commits are lost")
	}
	for _, list := range w.changes {
		slices.SortFunc(list, func(a, b logstream.Change) int {
			return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.CTS, b.CTS), cmp.Compare(a.Address.Position(), b.Address.Position()))
		})
	}
	return nil
}

// collect keeps what is newer than the array, and all where that is not whole.
func (w *Wreck) collect(c logstream.Change) {
	table := c.Row.Table()
	if b := w.bases[table]; b != nil && c.CTS <= b.cts && !b.bad[c.Row.Ordinal()/indirection.PageSlots] {
		return
	}
	w.changes[table] = append(w.changes[table], c)
}

// Tables lists the tables that there are rows of.
func (w *Wreck) Tables() []rowid.Table {
	tables := map[rowid.Table]bool{}
	for t := range w.bases {
		tables[t] = true
	}
	for t := range w.changes {
		tables[t] = true
	}
	return slices.Sorted(maps.Keys(tables))
}

// CommitsLost counts the commits that the log does not have in full, nor the
// arrays of all tables.
func (w *Wreck) CommitsLost() uint64 {
	after, until := uint64(math.MaxUint64), uint64(0)
	for _, c := range w.checkpoints {
		until = max(until, c.CTS)
		for _, t := range c.Tables {
			after = min(after, w.describedTo(t.Table))
		}
	}
	if after == math.MaxUint64 {
		after = 0
	}
	return w.Survey.Lost(after, until)
}

// describedTo is the commit up to which an array describes all rows of a table.
func (w *Wreck) describedTo(table rowid.Table) uint64 {
	if b := w.bases[table]; b != nil && len(b.bad) == 0 {
		return b.cts
	}
	return 0
}

// place is where a row is.
type place struct {
	row      rowid.ID
	address  logstream.Address
	doubtful bool
}

// Rows calls f with the newest version of every row of a table, those that are
// doubtful last. The payload is valid during the call. Rows whose record cannot
// be read are counted.
func (w *Wreck) Rows(ctx context.Context, table rowid.Table, f func(row rowid.ID, payload []byte, doubtful bool) error) (lost int64, err error) {
	places := w.places(table)
	slices.SortFunc(places, func(a, b place) int {
		if a.doubtful != b.doubtful {
			if b.doubtful {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.address, b.address)
	})
	var buf []byte
	for _, p := range places {
		if err := ctx.Err(); err != nil {
			return lost, err
		}
		var record logstream.Record
		record, buf, err = w.archive.ReadAt(p.address, buf)
		if err != nil || record.Row != p.row || record.Kind == logstream.Delete {
			lost++
			continue
		}
		if err := f(p.row, record.Payload, p.doubtful); err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// places finds the newest version of each row of a table.
func (w *Wreck) places(table rowid.Table) (list []place) {
	changes := w.changes[table]
	b := w.bases[table]
	add := func(row rowid.ID, word indirection.Word, doubtful bool) {
		if word.IsLog() {
			list = append(list, place{row, word.Address(), doubtful})
		}
	}
	if b != nil {
		b.each(table, func(row rowid.ID, word indirection.Word) {
			for len(changes) > 0 && changes[0].Row < row {
				n := sameRow(changes)
				word, doubtful := w.newest(b, 0, changes[:n])
				add(changes[0].Row, word, doubtful)
				changes = changes[n:]
			}
			n := 0
			if len(changes) > 0 && changes[0].Row == row {
				n = sameRow(changes)
			}
			word, doubtful := w.newest(b, word, changes[:n])
			add(row, word, doubtful)
			changes = changes[n:]
		})
	}
	for len(changes) > 0 {
		n := sameRow(changes)
		word, doubtful := w.newest(b, 0, changes[:n])
		add(changes[0].Row, word, doubtful)
		changes = changes[n:]
	}
	return list
}

// each calls f with the slots that are not empty, in order.
func (b *base) each(table rowid.Table, f func(rowid.ID, indirection.Word)) {
	var page [indirection.PageSlots]indirection.Word
	for p := range b.image.Pages() {
		if found, err := b.image.ReadPage(p, &page); b.bad[p] || err != nil || !found {
			continue
		}
		for i, word := range page {
			if word != 0 {
				f(rowid.Make(table, p*indirection.PageSlots+uint64(i)), word)
			}
		}
	}
}

// sameRow counts the changes at the front that belong to one row.
func sameRow(changes []logstream.Change) int {
	n := 1
	for n < len(changes) && changes[n].Row == changes[0].Row {
		n++
	}
	return n
}

// newest finds the newest version of one row, whose word in the array, if there
// is one, is old. Without it a relocation counts with the commit that its image
// comes from, because what it replaced may be gone.
func (w *Wreck) newest(b *base, old indirection.Word, changes []logstream.Change) (word indirection.Word, doubtful bool) {
	if len(changes) == 0 {
		return old, false
	}
	if b != nil && !b.bad[changes[0].Row.Ordinal()/indirection.PageSlots] {
		return replayed(old, changes), false
	}
	last := &changes[0]
	for i := range changes {
		if c := &changes[i]; cmp.Or(cmp.Compare(commitOf(c), commitOf(last)), cmp.Compare(c.CTS, last.CTS)) >= 0 {
			last = c
		}
	}
	word, _ = effect(last.Address, last.Kind, last.Origin)
	return word, last.CTS < w.Survey.WholeFrom()
}

// replayed makes the changes of a row in the order of commits.
func replayed(word indirection.Word, changes []logstream.Change) indirection.Word {
	for i := range changes {
		next, onlyIf := effect(changes[i].Address, changes[i].Kind, changes[i].Origin)
		if onlyIf == 0 || onlyIf == word {
			word = next
		}
	}
	return word
}

// commitOf is the commit that made the image of a change.
func commitOf(c *logstream.Change) uint64 {
	if c.Kind == logstream.Relocation {
		return c.Origin.CTS
	}
	return c.CTS
}
