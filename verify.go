package rekindle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/recovery"
)

type (
	// VerifyReport says what was checked and what was found. Files were read in
	// full, Bytes in all; of Checkpoints, of Rounds of the log, Records in these, and
	// Rows, compared with all indexes, it counts those that were checked. Findings
	// lists what is not as it should be; its method Damage tells whether any of that
	// is damage.
	VerifyReport = recovery.VerifyReport
	// Finding is something that is not as it should be: its Kind, the Path of the
	// file, and there Offset and Length in bytes, 0 for an unknown length or the whole
	// file; the Reason says what was found, Effect what that means.
	Finding = recovery.Finding
	// FindingKind is the kind of a Finding.
	FindingKind = recovery.FindingKind
)

// Kinds of findings. All but TornEnd and StrayFile are damage.
const (
	DamagedFile  = recovery.Damaged
	MissingFile  = recovery.Missing
	ForeignFile  = recovery.Foreign
	Inconsistent = recovery.Inconsistent
	TornEnd      = recovery.Torn
	StrayFile    = recovery.Stray
)

// Verify reads and checks every byte that matters of the database in a directory,
// which must not be open, and changes nothing, also after a crash: CURRENT and the
// manifest, array files, index files, suspects, all segments of the log; then
// whether every row can be read and every index has the entries of the rows. What
// is wrong is in the report. An error means that the verification could not be
// completed, and the report, if there is one, says what was found all the same:
// ErrLocked if the database is open, fs.ErrNotExist if there is no such directory, an
// error of the system where it refuses to read, which the report may take for damage.
//
// Not checked, because nothing is kept there: LOCK, files that are listed as
// strays, and in log segments the space behind the last round.
func Verify(ctx context.Context, dir string, opts *Options) (report *VerifyReport, err error) {
	o, dir, err := opts.in(dir)
	if err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if _, err := o.fs.Stat(dir); errors.Is(err, fs.ErrNotExist) { // a wrong name, not a damaged database
		return nil, fmt.Errorf("verify %s: %w", dir, err)
	}
	lock, err := lockIfThere(o.fs, filepath.Join(dir, "LOCK"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	report, err = recovery.Verify(ctx, o.fs, dir)
	if err != nil {
		return report, err
	}
	o.fs, o.ReadOnly, o.VerifyOnOpen = lockedFS{o.fs}, true, true
	db, err := Open(ctx, dir, &o)
	if err != nil {
		return report, noteUnlessEnded(ctx, report, err, dir, "the database does not open; salvage extracts its rows")
	}
	err = db.verifyRows(ctx, report)
	return report, errors.Join(err, db.Close(ctx))
}

// lockIfThere takes the lock of a database. Without the file nobody has it, and it
// is not made.
func lockIfThere(files vfs.FS, path string) (io.Closer, error) {
	switch _, err := files.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return noLock{}, nil
	case err != nil:
		return nil, err
	}
	return files.Lock(path)
}

// lockedFS is a file system in which the lock is held already.
type lockedFS struct{ vfs.FS }

func (lockedFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Close() error { return nil }

// Verify reads and checks every byte that matters of the open database beside its
// transactions: all files that it is made of, then every row and every index in
// one snapshot. See the function Verify.
func (db *DB) Verify(ctx context.Context) (report *VerifyReport, err error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.leave()
	err = db.untilClosed(ctx, func(ctx context.Context) error {
		report, err = db.verify(ctx)
		return err
	})
	return report, err
}

func (db *DB) verify(ctx context.Context) (report *VerifyReport, err error) {
	if db.checkpointer != nil {
		report, err = db.checkpointer.Verify(ctx)
	} else {
		report, err = recovery.Verify(ctx, db.files, db.dir)
	}
	if err != nil {
		return report, err
	}
	return report, db.verifyRows(ctx, report)
}

// verifyRows compares all indexes with the rows.
func (db *DB) verifyRows(ctx context.Context, report *VerifyReport) (err error) {
	report.Rows, err = db.crossCheck(ctx)
	if err != nil {
		return noteUnlessEnded(ctx, report, err, db.dir, "rows cannot be read, or an index does not have them")
	}
	return nil
}

// noteUnlessEnded makes a finding of an error, unless something has ended the search
// that is no damage.
func noteUnlessEnded(ctx context.Context, report *VerifyReport, err error, dir, effect string) error {
	if ctx.Err() != nil || errors.Is(err, fault.ErrClosed) || errors.Is(err, fault.ErrSnapshotTooOld) || vfs.Refused(err) {
		return err
	}
	report.Note(err, dir, effect)
	return nil
}

// CrossCheck compares every index with a scan of its table, in one snapshot,
// and returns the number of rows. A difference is ErrCorrupt and names the
// index. It reads every row; Close ends it early, with ErrClosed.
func (db *DB) CrossCheck(ctx context.Context) (rows int64, err error) {
	if err := db.enter(); err != nil {
		return 0, err
	}
	defer db.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.life, cancel)()
	rows, err = db.crossCheck(ctx)
	if err != nil && db.life.Err() != nil {
		err = fmt.Errorf("%w: %w", fault.ErrClosed, err)
	}
	return rows, err
}

func (db *DB) crossCheck(ctx context.Context) (rows int64, err error) {
	tx, err := db.manager.Begin(ctx, false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	for _, t := range db.catalog.tables() {
		n, err := tx.CrossCheck(ctx, t)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
