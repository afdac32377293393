package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
)

// usageError is a fault of the caller's: the exit code is 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// isUsage counts options that the engine refuses: they come from flags.
func isUsage(err error) bool {
	var usage usageError
	return errors.As(err, &usage) || errors.Is(err, rekindle.ErrInvalidOptions)
}

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	started := false
	root := newRoot(s, func() { started = true })
	root.SetArgs(doubleDashes(args))
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case !started || isUsage(err): // cobra refuses a command line before it starts a command
		fmt.Fprintf(s.err, "rekindle: %v\nSee '%s -help'.\n", err, cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(s.err, "rekindle: interrupted")
		return exitFailure
	default:
		fmt.Fprintf(s.err, "rekindle: %v\n", err)
		return exitFailure
	}
}

// newRoot calls started when a command begins, its flags and arguments being
// accepted.
func newRoot(s streams, started func()) *cobra.Command {
	root := &cobra.Command{
		Use:   "rekindle",
		Short: "An in-memory OLTP engine for Go whose restart does not depend on how much data it holds",
		Long: `An embeddable in-memory OLTP engine for Go whose restart does not depend on how
much data it holds: this command shows and measures it, and looks after databases.
Flags may be written with one dash or two.`,
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { started() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("which command?")}
		},
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetHelpCommand(newHelp(root))
	root.AddCommand(newDemo(s), newDemoChild(s), newTorture(s), newTortureChild(s), newConvert(s), newBackup(s), newVerify(s), newSalvage(s), newBench(s), newBenchTask(s))
	return root
}

// newHelp is cobra's help command, but that it refuses what it knows nothing of.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], cmd.CommandPath())
			}
			if err != nil {
				return usageError{err}
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}
