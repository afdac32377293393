package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
)

var errDamage = errors.New("the database is damaged")

func newVerify(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIRECTORY",
		Short: "Look for damage in a database",
		Long: `Read every byte that matters of the database in a directory, which must not be
open, compare all checksums, and compare all indexes with the rows. Nothing is
changed, also after a crash. Exit code 1 means damage; torn ends of a log that
was not closed and stray files are listed and are none.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := rekindle.Verify(cmd.Context(), args[0], nil)
			if err != nil {
				return err
			}
			for i := range report.Findings {
				if _, err := fmt.Fprintln(s.out, report.Findings[i].String()); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(s.out, "%d files with %d bytes, %d checkpoints, %d records of the log and %d rows checked, %d findings\n",
				report.Files, report.Bytes, report.Checkpoints, report.Records, report.Rows, len(report.Findings))
			if err == nil && report.Damage() {
				err = errDamage
			}
			return err
		},
	}
}
