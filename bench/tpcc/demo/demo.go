package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// ErrViolation says that a check failed after a reopen.
var ErrViolation = errors.New("the recovered database is wrong")

// Run loads the database and goes through the rounds. The report holds what
// was done up to an error. A violation ends the run with ErrViolation, for
// what follows would be built on a wrong database.
func Run(ctx context.Context, c Config) (Report, error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	r := &runner{config: c, orders: initialOrders(c.Scale)}
	err := r.run(ctx)
	return r.report, err
}

func initialOrders(s tpcc.Scale) int64 {
	return int64(s.Warehouses) * int64(s.Districts) * int64(s.Customers)
}

// runner carries what later rounds need of the earlier ones.
type runner struct {
	config   Config
	report   Report
	receipts []tpcc.Receipt // of all rounds so far
	orders   int64          // in the database after the last round
}

func (r *runner) run(ctx context.Context) error {
	start := time.Now()
	defer func() { r.report.Total = time.Since(start) }()
	if err := r.load(ctx); err != nil {
		return err
	}
	for n := 1; n <= r.config.Rounds; n++ {
		round, err := r.round(ctx, n)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		r.report.Rounds = append(r.report.Rounds, round)
		if round.Violations() > 0 {
			return fmt.Errorf("round %d: %w", n, ErrViolation)
		}
	}
	return nil
}

func (r *runner) open(ctx context.Context) (*rekindle.DB, error) {
	return rekindle.Open(ctx, r.config.Dir, &rekindle.Options{IndexStrategy: r.config.Strategy})
}

// load makes the initial database and closes it.
func (r *runner) load(ctx context.Context) error {
	start := time.Now()
	db, err := r.open(ctx)
	if err != nil {
		return err
	}
	tables, err := tpcc.OpenTables(ctx, db)
	if err == nil {
		err = tpcc.Load(ctx, tables, tpcc.LoadOptions{
			Scale:    r.config.Scale,
			Seed:     r.config.Seed,
			Progress: func(done, total int64) { r.config.progress("loading row", done, total) },
		})
	}
	err = errors.Join(err, db.Close(context.WithoutCancel(ctx)))
	r.report.Load = time.Since(start)
	return err
}

// round runs a child, kills it and looks at the database.
func (r *runner) round(ctx context.Context, n int) (Round, error) {
	round := Round{Number: n}
	r.config.progress("running round", int64(n), int64(r.config.Rounds))
	child, err := startChild(r.config.Executable, r.config.Args, r.config.child(n), r.config.Stderr)
	if err != nil {
		return round, err
	}
	var runErr, killErr error
	round.Ran, runErr = child.runFor(ctx, r.config.life(n))
	round.Acks, killErr = child.kill()
	if err := errors.Join(runErr, killErr); err != nil {
		return round, err
	}
	r.receipts = append(r.receipts, round.Acks.Receipts...)
	r.config.progress("checking round", int64(n), int64(r.config.Rounds))
	return round, r.reopen(ctx, &round)
}

// reopen recovers the database, measures that, and checks it.
func (r *runner) reopen(ctx context.Context, round *Round) error {
	start := time.Now()
	db, err := r.open(ctx)
	if err != nil {
		return fmt.Errorf("reopen after the kill: %w", err)
	}
	round.Open = time.Since(start)
	err = tpcc.FirstRead(ctx, db)
	round.FirstRead = time.Since(start)
	if err == nil {
		round.Recovery, round.Stats = db.RecoveryReport(), db.Stats()
		err = r.check(ctx, db, round)
	}
	return errors.Join(err, db.Close(context.WithoutCancel(ctx)))
}

func (r *runner) check(ctx context.Context, db *rekindle.DB, round *Round) error {
	tables, err := tpcc.OpenTables(ctx, db)
	if err != nil {
		return err
	}
	in, err := tpcc.Inspect(ctx, tables)
	if err != nil {
		return err
	}
	round.Rows = in.Rows
	round.Committed, r.orders = in.Audit.Orders()-r.orders, in.Audit.Orders()
	round.Findings = append(in.Findings, in.Audit.Receipts(r.receipts), r.checkCount(round))
	return nil
}

// checkCount checks that nothing but a terminal's last order, whose
// acknowledgement went down with the child, is there beyond what was
// acknowledged.
func (r *runner) checkCount(round *Round) tpcc.Finding {
	f := tpcc.Finding{Check: "no order from nowhere"}
	most := round.Acks.NewOrders + int64(r.config.Terminals)
	f.Expect(round.Committed <= most, "%d new orders found, %d acknowledged to %d terminals",
		round.Committed, round.Acks.NewOrders, r.config.Terminals)
	return f
}
