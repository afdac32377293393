package rekindle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/recovery"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// SalvageReport says what Salvage has extracted, and what is missing.
type SalvageReport struct {
	Findings   []Finding       // what is damaged, and what that means
	Checkpoint uint64          // the newest one that was of use, 0 for none: then the log alone was
	Records    int64           // of the log that could be read
	Tables     []SalvagedTable // by name
	// CommitsLost counts the commits since that checkpoint, or since an older one
	// that the rows of some table had to be taken from, of which something cannot be
	// read. What they changed is as it was before, and Partial ones are there in part.
	CommitsLost uint64
	Partial     int64
	// Undecided counts transactions of which records were found and left out,
	// because nothing tells whether or when they were committed.
	Undecided int64
	// Conflicts are rows that were left out because another one has a unique key
	// of theirs, the first 1,000.
	Conflicts []DuplicateKeyError
}

// SalvagedTable says what has become of one table.
type SalvagedTable struct {
	ID        uint16
	Name      string // empty if its definition is lost, and with it all that is in its rows
	Rows      int64  // extracted
	Doubtful  int64  // of these: perhaps deleted or changed later, by records that are lost
	Lost      int64  // known to have been there, but cannot be read
	Invalid   int64  // read, but not of the table's definition
	Conflicts int64  // see SalvageReport.Conflicts
}

// Complete reports whether nothing is missing, as far as can be told. Files of
// another database among those of this one may be in the place of what is missing.
func (r *SalvageReport) Complete() bool {
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == ForeignFile }) {
		return false
	}
	for _, t := range r.Tables {
		if t.Name == "" || t.Doubtful+t.Lost+t.Invalid+t.Conflicts > 0 {
			return false
		}
	}
	return r.CommitsLost == 0 && r.Partial == 0 && r.Undecided == 0
}

const maxConflicts = 1000 // in a report

// Salvage extracts everything that can be read of the database in a directory,
// which is damaged and not open, and makes a new database of it in another
// directory that is empty or does not exist. It changes nothing in the old one.
// Options apply to the new one; what is fixed at its creation is that of the old
// one if left zero.
//
// Only records whose checksum is right count. It manages without CURRENT, the
// manifest and checkpoints as long as the log has the rows, and passes over
// damage in the middle of the log, which an Open refuses. The report says what is
// missing. After an error the new directory holds a part and is of no use; what the
// system refuses to read is an error.
func Salvage(ctx context.Context, dir, to string, opts *Options) (report *SalvageReport, err error) {
	o, dir, err := opts.in(dir)
	if err != nil {
		return nil, err
	}
	if vfs.Within(dir, to) || vfs.Within(to, dir) {
		return nil, invalidOption("%s and %s are not apart", dir, to)
	}
	if err := vacant(o.fs, to); err != nil {
		return nil, err
	}
	lock, err := lockIfThere(o.fs, filepath.Join(dir, "LOCK"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	wreck, err := recovery.OpenWreck(ctx, o.fs, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, wreck.Refused(), wreck.Close()) }()
	s := &salvage{wreck: wreck, report: &SalvageReport{
		Findings: wreck.Findings, Checkpoint: wreck.Checkpoint, Records: wreck.Survey.Records,
		CommitsLost: wreck.CommitsLost(), Partial: wreck.Survey.Partial, Undecided: wreck.Survey.Undecided,
	}}
	return s.report, s.into(ctx, to, opts)
}

// vacant refuses a directory that holds anything but a lock: an Open would recover
// a database that is there.
func vacant(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != "LOCK" }) {
		return invalidOption("%s is not empty", dir)
	}
	return nil
}

// salvage moves rows from a wreck into a new database.
type salvage struct {
	wreck  *recovery.Wreck
	db     *DB
	report *SalvageReport
}

func (s *salvage) into(ctx context.Context, dir string, opts *Options) error {
	db, err := Open(ctx, dir, s.options(opts))
	if err != nil {
		return err
	}
	if s.db = db; !db.RecoveryReport().Created {
		return errors.Join(invalidOption("%s holds a database", dir), db.Close(ctx))
	}
	return errors.Join(s.tables(ctx), db.Close(ctx))
}

// options of the new database.
func (s *salvage) options(opts *Options) *Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.LogStreams == 0 {
		o.LogStreams = s.wreck.Header.LogStreams
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = s.wreck.Header.SegmentBytes
	}
	if _, err := strategyNamed(s.wreck.Header.Strategy); err == nil && o.IndexStrategy == "" {
		o.IndexStrategy = s.wreck.Header.Strategy
	}
	o.ReadOnly = false
	return &o
}

// tables makes all tables and fills them.
func (s *salvage) tables(ctx context.Context) error {
	definitions, err := s.definitions(ctx)
	if err != nil {
		return err
	}
	for _, id := range s.wreck.Tables() {
		if id == systemTable {
			continue
		}
		t := SalvagedTable{ID: uint16(id)}
		if definition := definitions[id]; definition != nil {
			t.Name = definition.Name
			err = s.fill(ctx, id, definition, &t)
		} else {
			t.Lost, err = s.wreck.Rows(ctx, id, func(rowid.ID, []byte, bool) error { t.Invalid++; return nil })
		}
		if err != nil {
			return fmt.Errorf("table %d %s: %w", id, t.Name, err)
		}
		delete(definitions, id)
		s.report.Tables = append(s.report.Tables, t)
	}
	for id, definition := range definitions { // empty ones
		if _, err := s.db.CreateTable(ctx, *definition); err != nil {
			return err
		}
		s.report.Tables = append(s.report.Tables, SalvagedTable{ID: uint16(id), Name: definition.Name})
	}
	slices.SortFunc(s.report.Tables, func(a, b SalvagedTable) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// definitions are the rows of the system table, or what checkpoints repeat of it.
func (s *salvage) definitions(ctx context.Context) (map[rowid.Table]*schema.Table, error) {
	layout, err := schema.NewLayout(systemSchema())
	if err != nil {
		return nil, err
	}
	found := map[rowid.Table]*schema.Table{}
	names := map[string]bool{}
	define := func(id rowid.Table, t *schema.Table) {
		if id != systemTable && found[id] == nil && !names[t.Name] { // the rows of two tables do not become one
			found[id], names[t.Name] = t, true
		}
	}
	_, err = s.wreck.Rows(ctx, systemTable, func(_ rowid.ID, payload []byte, _ bool) error {
		if id, t, err := readDefinition(layout, payload); err == nil {
			define(id, t)
		}
		return nil
	})
	for _, id := range slices.Sorted(maps.Keys(s.wreck.Definitions)) {
		if t, err := schema.Unmarshal(s.wreck.Definitions[id]); err == nil {
			define(id, t)
		}
	}
	return found, err
}

// salvageBatch rows are inserted by one transaction.
const salvageBatch = 500

// fill makes one table of what there is of its rows.
func (s *salvage) fill(ctx context.Context, id rowid.Table, definition *schema.Table, t *SalvagedTable) error {
	target, err := s.db.catalog.openTable(ctx, definition)
	if err != nil {
		return err
	}
	f := &filler{salvage: s, t: t, target: target}
	if t.Lost, err = s.wreck.Rows(ctx, id, func(_ rowid.ID, payload []byte, doubtful bool) error { return f.add(ctx, payload, doubtful) }); err != nil {
		return err
	}
	return f.flush(ctx)
}

// filler inserts rows in batches.
type filler struct {
	*salvage
	t      *SalvagedTable
	target *txn.Table
	rows   [][]byte
	bytes  int
}

func (f *filler) add(ctx context.Context, payload []byte, doubtful bool) error {
	if f.target.Layout.Check(payload) != nil {
		f.t.Invalid++
		return nil
	}
	if doubtful {
		f.t.Doubtful++
	}
	f.rows = append(f.rows, slices.Clone(payload))
	f.bytes += len(payload)
	if len(f.rows) < salvageBatch && f.bytes < maxRowBytes {
		return nil
	}
	return f.flush(ctx)
}

func (f *filler) flush(ctx context.Context) error {
	tx, err := f.db.manager.Begin(ctx, true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, row := range f.rows {
		if err := f.insert(&tx, row); err != nil {
			return err
		}
	}
	f.rows, f.bytes = f.rows[:0], 0
	return tx.Commit(ctx)
}

func (f *filler) insert(tx *txn.Tx, row []byte) error {
	call, err := tx.Enter(f.target)
	if err != nil {
		return err
	}
	defer call.Leave()
	err = call.Insert(f.target, row)
	var duplicate *fault.DuplicateKey
	if !errors.As(err, &duplicate) {
		f.t.Rows++
		return err
	}
	f.t.Conflicts++
	if len(f.report.Conflicts) < maxConflicts {
		f.report.Conflicts = append(f.report.Conflicts, *duplicate)
	}
	return nil
}
