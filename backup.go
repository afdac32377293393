package rekindle

import (
	"context"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/recovery"
)

// BackupResult says what a backup holds: everything up to the commit CTS, in a
// number of Files with Bytes in all.
type BackupResult = recovery.BackupResult

// Backup makes a copy of the database in a directory that is empty or does not
// exist: a database of its own, to be opened like any other. It holds every
// transaction that was committed before Backup was called, in one consistent
// state, and perhaps later ones. Transactions, checkpoints and compactions go on
// meanwhile; files and log segments that the copy needs stay until it is complete.
// What was copied is read back and compared, and the copy's log is verified: damage
// of the database, ErrCorrupt or ErrMissingFile, is no part of a backup.
//
// After an error, that of ctx included, the directory holds no database, or a
// complete one if only its lock could not be let go of. ErrReadOnly on a read-only
// database, ErrInvalidOptions if the directory is not empty or lies in that of the database.
//
// The copy has the identity of the original: their files must not be mixed. Verify
// notices it if they are, Open not always.
func (db *DB) Backup(ctx context.Context, dir string) (BackupResult, error) {
	return db.backup(ctx, db.files.FS, dir)
}

func (db *DB) backup(ctx context.Context, files vfs.FS, dir string) (r BackupResult, err error) {
	if err := db.enter(); err != nil {
		return r, err
	}
	defer db.leave()
	if db.checkpointer == nil {
		return r, fault.ErrReadOnly
	}
	if vfs.Within(db.dir, dir) { // where checkpoints delete what they do not know
		return r, invalidOption("%s is in the database %s", dir, db.dir)
	}
	err = db.untilClosed(ctx, func(ctx context.Context) error {
		if err := db.log.Flush(ctx); err != nil {
			return err
		}
		r, err = db.checkpointer.Backup(ctx, files, dir)
		return err
	})
	return r, err
}
