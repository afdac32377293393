package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
)

func newBackup(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIRECTORY NEW",
		Short: "Copy a database",
		Long: `Copy the database in a directory, which must not be open, to one that is empty
or does not exist. It is opened for that, so one that has crashed is recovered. A
program copies a database that it has open with DB.Backup.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := backup(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s: %d files, %d bytes, up to commit %d\n", args[1], r.Files, r.Bytes, r.CTS)
			return err
		},
	}
}

func backup(ctx context.Context, dir, to string) (r rekindle.BackupResult, err error) {
	found, err := rekindle.Open(ctx, dir, &rekindle.Options{ReadOnly: true}) // makes no database where there is none
	if err != nil {
		return r, err
	}
	if err := found.Close(ctx); err != nil {
		return r, err
	}
	db, err := rekindle.Open(ctx, dir, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close(ctx)) }()
	return db.Backup(ctx, to)
}
