// Command rekindle shows and measures the engine and looks after databases.
//
// Exit codes: 0 all well, 1 a failure or a violation, 2 wrong usage.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{out: os.Stdout, err: os.Stderr, terminal: isTerminal(os.Stderr)})
	stop()
	os.Exit(code)
}

// streams is where a command writes: results to out, the rest to err.
type streams struct {
	out, err io.Writer
	terminal bool // err is one, so progress may overwrite itself
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
