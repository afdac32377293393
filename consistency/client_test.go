package consistency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rekindledb/rekindle"
)

// settings are what a process of clients is told in its environment.
type settings struct {
	Dir      string
	Strategy string
	Life     int
	Seed     uint64
	Many     bool // operations on several registers
	Budget   int64
}

const settingsVariable = "REKINDLE_CONSISTENCY"

func TestMain(m *testing.M) {
	if text := os.Getenv(settingsVariable); text != "" {
		var s settings
		if err := errors.Join(json.Unmarshal([]byte(text), &s), s.run()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// line tells of the beginning of an operation or of its end.
type line struct {
	ID, Client int
	Call       *Operation `json:",omitempty"`
	Out        Outcome    `json:",omitempty"`
}

// cell is a register.
type cell struct {
	Register int64 `rekindle:",pk"`
	Value    int64 `rekindle:",unique"`
}

const clients = 5

// run opens the database and runs clients until standard input ends.
func (s *settings) run() error {
	ctx := context.Background()
	db, err := rekindle.Open(ctx, s.Dir, &rekindle.Options{
		IndexStrategy: s.Strategy, SegmentBytes: 64 << 10, CheckpointBytes: 32 << 10, MemoryBudget: s.Budget,
	})
	if err != nil {
		return err
	}
	cells, err := rekindle.OpenTable[cell](ctx, db, "cells")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "{}") // open
	var stop atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop.Store(true)
	}()
	failures := make(chan error, clients+1)
	var group sync.WaitGroup
	for n := range clients {
		c := client{db, cells, rand.New(rand.NewPCG(s.Seed, uint64(n))), n, s.Many, map[int]int64{}}
		group.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if err := c.operation(ctx, (s.Life*clients+n)<<20+i); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Go(func() { failures <- disturb(ctx, db, &stop) })
	group.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return errors.Join(err, db.Close(ctx))
}

// disturb keeps the engine busy with everything else that it has to do.
func disturb(ctx context.Context, db *rekindle.DB, stop *atomic.Bool) error {
	for !stop.Load() {
		if err := errors.Join(db.Checkpoint(ctx), db.Compact(ctx)); err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	_, err := db.CrossCheck(ctx)
	return err
}

type client struct {
	db     *rekindle.DB
	cells  *rekindle.Table[cell]
	rng    *rand.Rand
	number int
	many   bool
	seen   map[int]int64 // values by register, when they were last read
}

func tell(l line) error {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = os.Stdout.Write(append(text, '\n')) // one write, so that lines stay whole
	}
	return err
}

func (c *client) operation(ctx context.Context, id int) error {
	op := c.choose(int64(id) + 1)
	if err := tell(line{id, c.number, &op, nil}); err != nil {
		return err
	}
	out, err := c.execute(ctx, op)
	if err != nil {
		return err
	}
	for i, r := range op.Reads {
		c.seen[r] = out[i]
	}
	return tell(line{id, c.number, nil, out})
}

// choose makes up an operation; value is one that was never written before.
func (c *client) choose(value int64) Operation {
	r := c.rng.Perm(registers)
	n := 1
	if c.many {
		n += c.rng.IntN(registers)
	}
	op := Operation{Reads: r[:n]}
	kind := c.rng.IntN(10)
	if kind < 4 {
		return op // read only
	}
	op.Writes = map[int]int64{}
	for i, register := range r[:n] {
		op.Writes[register] = value<<8 + int64(i) + 1
	}
	if n == 1 && c.rng.IntN(4) == 0 {
		op.Writes[r[0]] = 0 // not with others: to delete a row that is not there is to read, and not to write
	}
	switch {
	case kind < 6:
		op.Reads = nil // blind
	case kind < 8:
		seen := c.seen[r[0]]
		op.If = &seen
	}
	return op
}

// execute runs an operation as a transaction, again and again while there are
// conflicts.
func (c *client) execute(ctx context.Context, op Operation) (out Outcome, err error) {
	run := c.db.Update
	if len(op.Writes) == 0 && c.rng.IntN(2) == 0 {
		run = c.db.View
	}
	err = rekindle.ErrConflict
	for errors.Is(err, rekindle.ErrConflict) {
		err = run(ctx, func(tx *rekindle.Tx) error {
			if out, err = c.read(tx, op.Reads); err != nil {
				return err
			}
			if op.If != nil && out[0] != *op.If {
				return nil
			}
			return c.write(tx, op.Writes)
		})
	}
	return out, err
}

// read reads registers in one of the ways that there are.
func (c *client) read(tx *rekindle.Tx, registers []int) (Outcome, error) {
	values := map[int64]int64{}
	var err error
	switch c.rng.IntN(3) {
	case 0:
		err = c.readByKey(tx, registers, values)
	case 1:
		err = c.readMany(tx, registers, values)
	default:
		for row, failure := range c.cells.Scan(tx, rekindle.Query{Index: []string{"", "value"}[c.rng.IntN(2)], Reverse: c.rng.IntN(2) == 0}) {
			values[row.Register], err = row.Value, failure
		}
	}
	out := Outcome{}
	for _, r := range registers {
		out = append(out, values[int64(r)])
	}
	return out, err
}

func (c *client) readByKey(tx *rekindle.Tx, registers []int, values map[int64]int64) error {
	for _, r := range registers {
		row := cell{Register: int64(r)}
		if err := c.cells.Get(tx, &row); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
			return err
		}
		values[row.Register] = row.Value
	}
	return nil
}

func (c *client) readMany(tx *rekindle.Tx, registers []int, values map[int64]int64) error {
	rows := make([]cell, len(registers))
	for i, r := range registers {
		rows[i].Register = int64(r)
	}
	_, err := c.cells.GetMany(tx, rows)
	for _, row := range rows {
		values[row.Register] = row.Value
	}
	return err
}

func (c *client) write(tx *rekindle.Tx, values map[int]int64) error {
	for r, value := range values {
		row := cell{int64(r), value}
		if value != 0 {
			if err := c.cells.Upsert(tx, &row); err != nil {
				return err
			}
		} else if err := c.cells.Delete(tx, &row); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
			return err
		}
	}
	return nil
}
