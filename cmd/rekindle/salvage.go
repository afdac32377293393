package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
)

func newSalvage(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "salvage DIRECTORY NEW-DIRECTORY",
		Short: "Extract what can be read of a damaged database into a new one",
		Long: `Read everything that is left of the database in a directory, which must not be
open, and make a new database of it in a directory that is empty or does not
exist. The old one is not changed. What is missing is listed; exit code 0 does
not mean that nothing is.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := rekindle.Salvage(cmd.Context(), args[0], args[1], nil)
			if err != nil {
				return err
			}
			return printSalvage(s, report)
		},
	}
}

func printSalvage(s streams, r *rekindle.SalvageReport) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(s.out, format+"\n", args...)
		}
	}
	for i := range r.Findings {
		line("%s", r.Findings[i].String())
	}
	for i := range r.Conflicts {
		line("left out: %v", &r.Conflicts[i])
	}
	line("checkpoint %d, %d records of the log read", r.Checkpoint, r.Records)
	line("%d commits lost in full or in part, %d there in part, %d undecided", r.CommitsLost, r.Partial, r.Undecided)
	for _, t := range r.Tables {
		name := t.Name
		if name == "" {
			name = fmt.Sprintf("table %d without definition", t.ID)
		}
		line("%s: %d rows, %d of them doubtful; %d lost, %d invalid, %d in conflict", name, t.Rows, t.Doubtful, t.Lost, t.Invalid, t.Conflicts)
	}
	if r.Complete() {
		line("nothing is missing")
	}
	return err
}
