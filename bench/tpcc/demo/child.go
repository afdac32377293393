package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// ChildConfig tells the child what to run. It crosses the process border as
// JSON.
type ChildConfig struct {
	Dir             string         `json:"dir"`
	Strategy        string         `json:"strategy"`
	CheckpointBytes int64          `json:"checkpointBytes"`
	Scale           tpcc.Scale     `json:"scale"`
	Constants       tpcc.Constants `json:"constants"`
	Seed            uint64         `json:"seed"`
	Terminals       int            `json:"terminals"`
}

// RunChild opens the database and runs the mix on all terminals, each commit
// durable before it is acknowledged, and writes the acknowledgements to pipe.
// It ends only with an error or with ctx: it is made to be killed.
func RunChild(ctx context.Context, c ChildConfig, pipe io.Writer) error {
	if err := c.Scale.Validate(); err != nil {
		return err
	}
	db, err := rekindle.Open(ctx, c.Dir, &rekindle.Options{
		IndexStrategy:   c.Strategy,
		CheckpointBytes: c.CheckpointBytes,
		Durability:      rekindle.Sync,
	})
	if err != nil {
		return err
	}
	tables, err := tpcc.OpenTables(ctx, db)
	if err == nil {
		err = c.runTerminals(ctx, tables, pipe)
	}
	return errors.Join(err, db.Close(context.WithoutCancel(ctx)))
}

// runTerminals returns the first error of a terminal; it stops the others.
func (c *ChildConfig) runTerminals(ctx context.Context, tables *tpcc.Tables, pipe io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var terminals sync.WaitGroup
	for i := range c.Terminals {
		terminals.Go(func() {
			cancel(fmt.Errorf("terminal %d: %w", i, c.runTerminal(ctx, tables, pipe, i)))
		})
	}
	terminals.Wait()
	return context.Cause(ctx)
}

func (c *ChildConfig) runTerminal(ctx context.Context, tables *tpcc.Tables, pipe io.Writer, number int) error {
	terminal := tpcc.NewTerminal(tables, tpcc.TerminalOptions{
		Scale:     c.Scale,
		Constants: c.Constants,
		Seed:      c.Seed,
		Number:    number,
	})
	var buf []byte
	for {
		result, err := terminal.Next(ctx)
		if err != nil {
			return err
		}
		buf = appendResult(buf[:0], result)
		if _, err := pipe.Write(buf); err != nil {
			return fmt.Errorf("write acknowledgement: %w", err)
		}
	}
}
