package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// Ending is how a check leaves the database.
type Ending string

// The endings.
const (
	Close   Ending = "close"   // with a last checkpoint
	Abandon Ending = "abandon" // closed without one
	Drop    Ending = "drop"    // open: the process is killed
)

// Check is what a child looks at.
type Check struct {
	Database Database `json:"database"`
	Options  Options  `json:"options"`
	Ledger   string   `json:"ledger"` // file
	Ending   Ending   `json:"ending"`
	Verify   bool     `json:"verify"` // all files, first

	// Patience is after what time the child has hung.
	Patience time.Duration `json:"patience"`
}

// Verdict is what a check found.
type Verdict struct {
	Findings []tpcc.Finding // violations make the run fail

	Confirmed int64           // acknowledged since the last check and there
	Forgone   int64           // acknowledged, not there, and not promised
	Lost      int64           // promised and not there
	Extra     int64           // there and from nowhere
	Numbers   map[int32]int64 // of counters: the clients'
	Kept      []tpcc.Receipt  // of TPC-C: those not promised and there
	Counted   int64           // of TPC-C: orders and payments

	Open     time.Duration
	Replayed int64 // records
}

// violations describes what is wrong.
func (v *Verdict) violations() error {
	var errs []error
	for _, f := range v.Findings {
		if f.OK() {
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %d of %d comparisons failed", f.Check, f.Violations, f.Checked))
		for _, detail := range f.Details {
			errs = append(errs, fmt.Errorf("  %s", detail))
		}
	}
	return errors.Join(errs...)
}

// check judges the database. An error of the engine is a violation too.
func check(ctx context.Context, c Check) (*Verdict, error) {
	l, err := loadLedger(c.Ledger)
	if err != nil {
		return nil, err
	}
	if l.Checked && c.Verify {
		if err := c.verify(ctx); err != nil {
			return failing("verification: ", nil, err), nil
		}
	}
	if l.Checked { // else the tables may be missing, and cannot be made
		if v, err := c.open(ctx, l, true, Close); err != nil || v.violations() != nil {
			return failing("read-only: ", v, err), nil
		}
	}
	v, err := c.open(ctx, l, false, c.Ending)
	return failing("", v, err), nil
}

// verify looks for damage as the crash has left the files.
func (c *Check) verify(ctx context.Context) error {
	report, err := rekindle.Verify(ctx, c.Database.Dir, c.Options.engine(&c.Database))
	if err == nil {
		err = damageIn(report)
	}
	return err
}

// failing adds how an error came about to the verdict.
func failing(how string, v *Verdict, err error) *Verdict {
	if err != nil {
		f := tpcc.Finding{Check: "the database can be opened, read and closed"}
		f.Expect(false, "%v", err)
		v = &Verdict{Findings: []tpcc.Finding{f}}
	}
	for i := range v.Findings {
		v.Findings[i].Check = how + v.Findings[i].Check
	}
	return v
}

// open judges the database in one life of it.
func (c *Check) open(ctx context.Context, l *Ledger, readOnly bool, ending Ending) (*Verdict, error) {
	o := c.Options.engine(&c.Database)
	o.ReadOnly = readOnly
	start := time.Now()
	db, err := rekindle.Open(ctx, c.Database.Dir, o)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	v, err := judge(ctx, db, &c.Database, l)
	if err != nil {
		return nil, errors.Join(err, db.Close(ctx))
	}
	v.Open = took
	v.judgeRecovery(db.RecoveryReport())
	return v, ending.apply(ctx, db)
}

// judgeRecovery notes that nothing was damaged: no kill damages what was durable. A
// manifest record that was being written is no damage.
func (v *Verdict) judgeRecovery(r rekindle.RecoveryReport) {
	f := tpcc.Finding{Check: "recovery finds no damage"}
	damage := slices.DeleteFunc(slices.Clone(r.Fallbacks), func(text string) bool { return strings.Contains(text, "was being written") })
	f.Expect(len(damage) == 0, "%q", damage)
	v.Findings = append(v.Findings, f)
	v.Replayed = r.RecordsReplayed
}

func (e Ending) apply(ctx context.Context, db *rekindle.DB) error {
	switch e {
	case Close:
		return db.Close(ctx)
	case Abandon:
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := db.Close(ended); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("close without a checkpoint: %w", err)
		}
	}
	return nil
}

// judge compares the content with the ledger.
func judge(ctx context.Context, db *rekindle.DB, d *Database, l *Ledger) (*Verdict, error) {
	if d.Workload == Counters {
		return judgeCounters(ctx, db, l)
	}
	return judgeTPCC(ctx, db, d, l)
}

func judgeCounters(ctx context.Context, db *rekindle.DB, l *Ledger) (*Verdict, error) {
	w, err := counters.Open(ctx, db)
	if err != nil {
		return nil, err
	}
	content := tpcc.Finding{Check: "the content follows from the counters"}
	err = w.Check(ctx, nil)
	content.Expect(err == nil, "%v", err)
	v := new(Verdict)
	if v.Numbers, err = w.Counters(ctx); err != nil {
		return nil, err
	}
	v.compareNumbers(l)
	v.Findings = append(v.Findings, content)
	return v, nil
}

// compareNumbers compares the clients' counters with the acknowledged ones.
func (v *Verdict) compareNumbers(l *Ledger) {
	there := tpcc.Finding{Check: "acknowledged transactions are there"}
	nowhere := tpcc.Finding{Check: "no transaction from nowhere"}
	all := l.all()
	for client, number := range l.Durable.Numbers {
		lost := max(0, number-v.Numbers[client])
		there.Expect(lost == 0, "client %d: %d was promised, the last one there is %d", client, number, v.Numbers[client])
		v.Lost += lost
	}
	for client, number := range all.Numbers {
		v.Forgone += max(0, number-max(v.Numbers[client], l.Durable.Numbers[client]))
	}
	for client, number := range v.Numbers {
		extra := max(0, number-all.Numbers[client]-l.Lives)
		nowhere.Expect(extra == 0, "client %d: at %d, %d was acknowledged to it, in %d lives", client, number, all.Numbers[client], l.Lives)
		v.Extra += extra
	}
	v.Findings = append(v.Findings, there, nowhere)
}

func judgeTPCC(ctx context.Context, db *rekindle.DB, d *Database, l *Ledger) (*Verdict, error) {
	tables, err := tpcc.OpenTables(ctx, db)
	if err != nil {
		return nil, err
	}
	in, err := tpcc.Inspect(ctx, tables)
	if err != nil {
		return nil, err
	}
	there := in.Audit.Receipts(l.Durable.Receipts)
	v := &Verdict{Findings: in.Findings, Lost: there.Violations, Counted: in.Audit.Orders() + in.Audit.Payments()}
	for _, receipts := range l.looseReceipts() {
		if f := in.Audit.Receipts(receipts); f.OK() {
			v.Kept = append(v.Kept, receipts...)
		} else {
			v.Forgone++
		}
	}
	nowhere := tpcc.Finding{Check: "no transaction from nowhere"}
	most := l.Known + l.Acked + l.Lives*int64(d.Clients)
	v.Extra = max(0, v.Counted-most)
	nowhere.Expect(v.Extra == 0, "%d orders and payments, %d at the last check, %d acknowledged since to %d clients in %d lives",
		v.Counted, l.Known, l.Acked, d.Clients, l.Lives)
	v.Findings = append(v.Findings, there, nowhere)
	return v, nil
}
