package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rekindledb/rekindle/bench/task"
)

// ErrViolation says that a database is not what it must be.
var ErrViolation = errors.New("the recovered database is wrong")

// Run goes through the rounds. The report holds what was done up to an error,
// whichever it is. After an error the database is kept as it is.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.setDefaults()
	r := &runner{Config: c, Report: newReport(), clock: newClock(), cuts: rand.New(rand.NewPCG(c.Seed, 1))}
	if err := c.Validate(); err != nil {
		return r.Report, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return r.Report, err
	}
	start := time.Now()
	err := r.run(ctx, start)
	r.Report.Took = time.Since(start)
	return r.Report, err
}

// runner carries what rounds have in common.
type runner struct {
	Config
	*Report
	clock    clock
	cuts     *rand.Rand
	database Database
	ledger   *Ledger
}

func (r *runner) run(ctx context.Context, start time.Time) error {
	for n := 1; r.Config.Rounds == 0 || n <= r.Config.Rounds; n++ {
		if r.Time > 0 && time.Since(start) >= r.Time {
			break
		}
		r.progress(n)
		if err := r.round(ctx, n); err != nil {
			return fmt.Errorf("round %d (%s, %s): %w", n, r.database.Workload, r.database.Strategy, err)
		}
		r.Report.Rounds++
	}
	return r.remove()
}

func (r *runner) round(ctx context.Context, n int) error {
	if r.inDatabase(n) == 0 {
		if err := r.newDatabase(ctx, (n-1)/r.PerDatabase); err != nil {
			return err
		}
	}
	plan := r.Config.round(n, r.database)
	for i, a := range plan.early {
		if err := r.kill(ctx, a, &plan.lives[i]); err != nil {
			return err
		}
	}
	if plan.life.Convert != "" {
		r.database.Strategy = "" // the one before or the one after
	}
	if err := r.kill(ctx, plan.last, &plan.life); err != nil {
		return err
	}
	return r.check(ctx, Check{Database: r.database, Options: plan.after, Ending: plan.check, Verify: plan.verify})
}

// newDatabase makes the n-th database, from 0, in place of the one before.
func (r *runner) newDatabase(ctx context.Context, n int) error {
	if err := r.remove(); err != nil {
		return err
	}
	r.database = r.Config.database(n, filepath.Join(r.Data, strconv.Itoa(n)))
	r.ledger = new(Ledger)
	r.Databases++
	if r.database.Workload == Counters {
		return nil // the first life makes it
	}
	r.ledger.Known = initialCount(r.database.Scale)
	plan := r.Config.round(n*r.PerDatabase+1, r.database)
	var done struct{}
	err := r.runner().Run(ctx, loadTask, Check{Database: r.database, Options: plan.after, Patience: r.patience}, &done, task.Kill)
	return errors.Join(err, r.cut())
}

func (r *runner) remove() error {
	if r.ledger == nil {
		return nil
	}
	return os.RemoveAll(r.database.Dir)
}

func (r *runner) runner() *task.Runner {
	return &task.Runner{Executable: r.Executable, Args: r.Args, Stderr: r.Stderr}
}

// kill runs a life and ends it.
func (r *runner) kill(ctx context.Context, a aim, l *Life) error {
	r.ledger.begin(l.Options.Durability == 0)
	v, err := startVictim(&r.Config, l, r.ledger, r.clock)
	if err != nil {
		return err
	}
	at, err := v.run(ctx, a, r.patience+r.grace)
	r.killed(v, at)
	if errors.Is(err, errEnded) { // it could not open, or go on
		err = fmt.Errorf("%w: %w", ErrViolation, err)
	}
	return errors.Join(err, r.cut())
}

// cut takes the power away.
func (r *runner) cut() error {
	if r.PowerCut == nil {
		return nil
	}
	r.Cuts++
	if err := r.PowerCut(r.cuts); err != nil {
		return fmt.Errorf("power cut: %w", err)
	}
	return nil
}

func (r *runner) check(ctx context.Context, c Check) error {
	c.Ledger = filepath.Join(r.Dir, ledgerFile)
	c.Patience = r.patience
	if err := r.ledger.save(c.Ledger); err != nil {
		return err
	}
	end := task.Await
	if c.Ending == Drop {
		end = task.Kill
	}
	var v Verdict
	if err := r.runner().Run(ctx, checkTask, c, &v, end); err != nil {
		return err
	}
	r.clock.observe(Opening, v.Open)
	v.Confirmed = r.ledger.fresh - v.Forgone - v.Lost
	r.checked(&v)
	if err := v.violations(); err != nil {
		return fmt.Errorf("%w:\n%w", ErrViolation, err)
	}
	r.ledger.checked(&v)
	return r.cut()
}
