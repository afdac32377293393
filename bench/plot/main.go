// Command plot draws the JSON lines of "rekindle bench" as SVG files:
//
//	recovery-….svg  time from Open to the first read against rows, log axes
//	climb-….svg     reads a second after the call of Open
//	timeline-….svg  transactions a second through checkpoints, which are shaded
//	memory-….svg    memory by strategy
//
// There is one file for each of the circumstances in its name. Usage:
//
//	cd bench/plot && go run . -out DIR FILE...
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rekindledb/rekindle/bench"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "plot:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, help io.Writer) error {
	flags := flag.NewFlagSet("plot", flag.ContinueOnError)
	flags.SetOutput(help)
	dir := flags.String("out", ".", "directory for the SVG files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("which files? They hold what 'rekindle bench … -json FILE' writes")
	}
	var lines []bench.Measurement
	for _, name := range flags.Args() {
		more, err := read(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		lines = append(lines, more...)
	}
	figures, err := drawAll(lines)
	if err != nil {
		return err
	}
	if len(figures) == 0 {
		return errors.New("there is nothing to draw")
	}
	return save(*dir, figures, out)
}

func read(name string) ([]bench.Measurement, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bench.ReadMeasurements(f)
}
