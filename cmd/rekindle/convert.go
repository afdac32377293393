package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
)

func newConvert(s streams) *cobra.Command {
	var strategy string
	cmd := &cobra.Command{
		Use:   "convert DIRECTORY",
		Short: "Give a database another index strategy",
		Long: `Give the database in a directory, which must not be open, another index
strategy, and build its indexes in the new form. Every row is read once. A crash
in between leaves the old strategy or the new one.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strategy == "" { // it changes the database, so nothing is guessed
				return usageError{errors.New("to which -strategy?")}
			}
			if err := rekindle.Convert(cmd.Context(), args[0], strategy, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(s.out, "%s now has index strategy %s\n", args[0], strategy)
			return err
		},
	}
	cmd.Flags().StringVar(&strategy, "strategy", "", "index strategy, no default: "+strings.Join(rekindle.IndexStrategies(), ", "))
	return cmd
}
