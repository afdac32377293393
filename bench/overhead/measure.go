package overhead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/task"
	"github.com/rekindledb/rekindle/bench/usage"
)

// Result is what the measuring process found.
type Result struct {
	Full        Checkpoint
	Incremental []Checkpoint
	Slices      []Slice // off and on in turns, each pair in another order than the one before
	Memory      usage.Usage
}

// measurer is the measuring process.
type measurer struct {
	config   *measureConfig
	reporter *task.Reporter
	db       *rekindle.DB
	table    dataset.Table
	rows     *population
	result   Result
	start    time.Time // of the first slice
}

// open opens the new database so that it checkpoints on request only.
func open(ctx context.Context, c *measureConfig, r *task.Reporter) (*measurer, error) {
	durability := rekindle.None
	if c.Load.Durable {
		durability = rekindle.Sync
	}
	db, err := rekindle.Open(ctx, c.Dir, &rekindle.Options{
		IndexStrategy:   c.Strategy,
		CheckpointBytes: -1,
		Durability:      durability,
	})
	if err != nil {
		return nil, err
	}
	table, err := dataset.Open(ctx, db, c.Load.Indexes)
	if err != nil {
		return nil, errors.Join(err, db.Close(ctx))
	}
	return &measurer{config: c, reporter: r, db: db, table: table, rows: newPopulation(uint64(c.Rows), uint64(c.Load.Writers))}, nil
}

func (m *measurer) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{m.load, m.quiet, m.warmUp, m.slices} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var err error
	m.result.Memory, err = usage.Read(m.config.Dir)
	return err
}

func (m *measurer) load(ctx context.Context) error {
	err := dataset.Load(ctx, m.db, m.table, 0, uint64(m.config.Rows), func(done, total int64) {
		m.reporter.Progress("loading "+m.config.Strategy+" row", done, total)
	})
	if err != nil {
		return err
	}
	m.result.Full, err = m.durableCheckpoint(ctx)
	return err
}

// Changes before an incremental checkpoint: rows/touchedRows of them in
// 1/touchedShare of the key space.
const (
	touchedRows  = 1000
	touchedShare = 100
)

// quiet times incremental checkpoints while nothing else goes on.
func (m *measurer) quiet(ctx context.Context) error {
	s := m.table.Session()
	for i := range m.config.Pairs {
		m.reporter.Progress("incremental checkpoint", int64(i), int64(m.config.Pairs))
		err := m.db.Update(ctx, func(tx *rekindle.Tx) error { return m.touch(tx, s, uint64(i)) })
		if err != nil {
			return err
		}
		c, err := m.durableCheckpoint(ctx)
		if err != nil {
			return err
		}
		m.result.Incremental = append(m.result.Incremental, c)
	}
	return nil
}

// touch inserts new rows with keys spread evenly over one part of the key
// space, another one each time.
func (m *measurer) touch(tx *rekindle.Tx, s dataset.Session, round uint64) error {
	const share = 1<<64/touchedShare - 1
	rows := max(1, uint64(m.config.Rows)/touchedRows)
	first := (round * 37 % touchedShare) * share
	for i := range rows {
		if err := s.Insert(tx, first+share/rows*i+round); err != nil {
			return fmt.Errorf("row between others: %w", err)
		}
	}
	return nil
}

// warmUp works for a slice that does not count.
func (m *measurer) warmUp(ctx context.Context) error {
	m.start = time.Now()
	_, err := m.slice(ctx, false)
	m.start = time.Now()
	return err
}

func (m *measurer) slices(ctx context.Context) error {
	n := 2 * m.config.Pairs
	for i := range n {
		m.reporter.Progress("slice", int64(i), int64(n))
		on := (i%2 == 1) != (i/2%2 == 1) // off on, on off, …
		s, err := m.slice(ctx, on)
		if err != nil {
			return err
		}
		m.result.Slices = append(m.result.Slices, s)
	}
	return nil
}

// durableCheckpoint times a checkpoint of everything committed, but not the
// wait for that to be durable.
func (m *measurer) durableCheckpoint(ctx context.Context) (Checkpoint, error) {
	if err := bench.Settle(ctx, m.db); err != nil {
		return Checkpoint{}, err
	}
	return timedCheckpoint(ctx, m.db, m.config.Dir, time.Now())
}
