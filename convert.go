package rekindle

import (
	"context"

	"github.com/rekindledb/rekindle/recovery"
)

// Convert gives the database in a directory another index strategy and builds
// its indexes. It must not be open; options apply as for Open, but for
// IndexStrategy and ReadOnly, which is refused. It reads every row once. Errors are
// those of Open, and ErrMissingFile if there is no database. After an error the
// database has the old strategy or the new one; without Options.IndexStrategy it opens
// with either, and RecoveryReport says which.
func Convert(ctx context.Context, dir, strategy string, opts *Options) error {
	o, dir, err := opts.in(dir)
	if err != nil {
		return err
	}
	if _, err := strategyNamed(strategy); err != nil { // Open would take none for the one that the database has
		return err
	}
	o.IndexStrategy = strategy
	if err := o.validate(); err != nil {
		return err
	}
	if o.ReadOnly {
		return invalidOption("ReadOnly, to convert")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := recovery.Convert(o.fs, dir, strategy); err != nil {
		return err
	}
	db, err := Open(ctx, dir, &o)
	if err != nil {
		return err
	}
	return db.Close(ctx)
}
