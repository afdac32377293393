package tpcc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
)

const (
	batchRows = 1000   // of one loading transaction
	chunkRows = 10_000 // items or stock rows of one part
)

// LoadOptions say what Load makes.
type LoadOptions struct {
	Scale    Scale
	Seed     uint64                  // equal seeds give equal rows, except for Now
	Now      time.Time               // entry and delivery dates; zero = the time of the call
	Workers  int                     // goroutines; 0 = GOMAXPROCS
	Progress func(done, total int64) // rows, from one goroutine at a time; nil = none
}

// Load fills empty tables with the initial database. Its transactions do not
// wait for the disk; the checkpoint that ends it makes everything durable.
func Load(ctx context.Context, t *Tables, o LoadOptions) error {
	if err := o.Scale.Validate(); err != nil {
		return err
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	l := &loader{tables: t, options: o, total: o.Scale.Rows()}
	if err := l.run(ctx, l.parts()); err != nil {
		return fmt.Errorf("load tpcc: %w", err)
	}
	return bench.Checkpoint(ctx, t.DB)
}

// loader runs parts of the load on several goroutines. Parts share no row.
type loader struct {
	tables  *Tables
	options LoadOptions
	total   int64

	mu   sync.Mutex // guards done and the calls of Progress
	done int64
}

// part inserts one share of the rows.
type part func(g *generator, b *batch) error

func (l *loader) parts() []part {
	s := l.options.Scale
	parts := chunks(s.Items, l.items)
	for w := 1; w <= s.Warehouses; w++ {
		parts = append(parts, func(g *generator, b *batch) error {
			row := g.warehouse(w)
			return insert(b, l.tables.Warehouse, &row)
		})
		parts = append(parts, chunks(s.Items, func(lo, hi int) part { return l.stocks(w, lo, hi) })...)
		for d := 1; d <= s.Districts; d++ {
			parts = append(parts, func(g *generator, b *batch) error { return l.district(g, b, w, d) })
		}
	}
	return parts
}

// chunks cuts 1 to n into parts of chunkRows.
func chunks(n int, make func(lo, hi int) part) []part {
	var parts []part
	for lo := 1; lo <= n; lo += chunkRows {
		parts = append(parts, make(lo, min(lo+chunkRows-1, n)))
	}
	return parts
}

func (l *loader) items(lo, hi int) part {
	return func(g *generator, b *batch) error {
		for i := lo; i <= hi; i++ {
			row := g.item(i)
			if err := insert(b, l.tables.Item, &row); err != nil {
				return err
			}
		}
		return nil
	}
}

func (l *loader) stocks(w, lo, hi int) part {
	return func(g *generator, b *batch) error {
		for i := lo; i <= hi; i++ {
			row := g.stock(w, i)
			if err := insert(b, l.tables.Stock, &row); err != nil {
				return err
			}
		}
		return nil
	}
}

// district makes a district, its customers and their history and orders.
func (l *loader) district(g *generator, b *batch, w, d int) error {
	row := g.district(w, d)
	if err := insert(b, l.tables.District, &row); err != nil {
		return err
	}
	for c := 1; c <= g.scale.Customers; c++ {
		if err := l.customer(g, b, w, d, c); err != nil {
			return err
		}
	}
	for i, c := range g.Perm(g.scale.Customers) {
		if err := l.order(g, b, w, d, i+1, c+1); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) customer(g *generator, b *batch, w, d, c int) error {
	row := g.customer(w, d, c)
	if err := insert(b, l.tables.Customer, &row); err != nil {
		return err
	}
	history := g.history(&row)
	return insert(b, l.tables.History, &history)
}

func (l *loader) order(g *generator, b *batch, w, d, o, c int) error {
	row, lines := g.order(w, d, o, c)
	if err := insert(b, l.tables.Order, &row); err != nil {
		return err
	}
	for i := range lines {
		if err := insert(b, l.tables.OrderLine, &lines[i]); err != nil {
			return err
		}
	}
	if g.delivered(o) {
		return nil
	}
	return insert(b, l.tables.NewOrder, &NewOrder{Warehouse: row.Warehouse, District: row.District, Order: row.ID})
}

// run works the parts off; the first error stops the rest.
func (l *loader) run(ctx context.Context, parts []part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan int, len(parts))
	for i := range parts {
		queue <- i
	}
	close(queue)
	var workers sync.WaitGroup
	for range l.options.Workers {
		workers.Go(func() {
			for i := range queue {
				if err := l.runPart(ctx, i, parts[i]); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

func (l *loader) runPart(ctx context.Context, i int, p part) error {
	b := &batch{ctx: ctx, db: l.tables.DB, committed: l.progress}
	g := &generator{
		random:    newRandom(l.options.Seed, uint64(i)),
		scale:     l.options.Scale,
		constants: LoadConstants(l.options.Seed),
		now:       l.options.Now,
	}
	if err := p(g, b); err != nil {
		return errors.Join(err, b.rollback())
	}
	return b.commit()
}

func (l *loader) progress(rows int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done += int64(rows)
	if l.options.Progress != nil {
		l.options.Progress(min(l.done, l.total), l.total)
	}
}

// batch gathers inserts into transactions of batchRows.
type batch struct {
	ctx       context.Context
	db        *rekindle.DB
	tx        *rekindle.Tx
	rows      int
	committed func(rows int)
}

// insert inserts the row in the batch's transaction and commits a full one.
func insert[T any](b *batch, t *rekindle.Table[T], row *T) error {
	if err := b.begin(); err != nil {
		return err
	}
	if err := t.Insert(b.tx, row); err != nil {
		return err
	}
	b.rows++
	if b.rows < batchRows {
		return nil
	}
	return b.commit()
}

func (b *batch) begin() error {
	if b.tx != nil {
		return nil
	}
	tx, err := b.db.Begin(b.ctx, true)
	if err != nil {
		return err
	}
	b.tx = tx
	return tx.SetDurability(rekindle.None)
}

func (b *batch) commit() error {
	if b.tx == nil {
		return nil
	}
	err := b.tx.Commit(b.ctx)
	if err == nil {
		b.committed(b.rows)
	}
	b.tx, b.rows = nil, 0
	return err
}

func (b *batch) rollback() error {
	if b.tx == nil {
		return nil
	}
	return b.tx.Rollback()
}
