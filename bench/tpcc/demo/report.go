package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// Round is what one kill and reopen showed.
type Round struct {
	Number    int
	Ran       time.Duration // from the first acknowledgement to the kill
	Acks      Acks
	Rows      int64         // in all tables after the reopen
	Committed int64         // new orders of this round found after the reopen
	Open      time.Duration // of the call of Open
	FirstRead time.Duration // from the call of Open to the first row read
	Recovery  rekindle.RecoveryReport
	Stats     rekindle.Stats // right after the first read
	Findings  []tpcc.Finding
}

// Violations is the number of failed comparisons.
func (r *Round) Violations() int64 {
	var n int64
	for i := range r.Findings {
		n += r.Findings[i].Violations
	}
	return n
}

// Rate is acknowledged new-orders a minute: like tpmC, but without think times.
func (r *Round) Rate() float64 {
	if r.Ran <= 0 {
		return 0
	}
	return float64(r.Acks.NewOrders) / r.Ran.Minutes()
}

func (r *Round) checks() string {
	failed := 0
	for i := range r.Findings {
		if !r.Findings[i].OK() {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Sprintf("%d of %d FAILED", failed, len(r.Findings))
	}
	return fmt.Sprintf("%d ok", len(r.Findings))
}

// Report is what a run showed.
type Report struct {
	Load   time.Duration // of the initial database, checkpoint and close included
	Total  time.Duration
	Rounds []Round
}

// OK reports that no round found a violation.
func (r *Report) OK() bool { return r.violations() == 0 }

func (r *Report) violations() int64 {
	var n int64
	for i := range r.Rounds {
		n += r.Rounds[i].Violations()
	}
	return n
}

// WriteTable writes a line a round, the violations and a summary.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...any) {
		fmt.Fprintln(table, strings.Join(texts(cells), "\t")+"\t") // the error stays in the writer, for Flush
	}
	row("round", "ran", "tx acked", "orders acked", "orders found", "orders/min", "rows", "log MiB",
		"tail records", "open", "of it indexes", "first read", "checks")
	for i := range r.Rounds {
		o := &r.Rounds[i]
		row(o.Number, milliseconds(o.Ran), o.Acks.Transactions, o.Acks.NewOrders, o.Committed, int64(o.Rate()),
			o.Rows, mebibytes(o.Stats.LogBytes), o.Recovery.RecordsReplayed,
			milliseconds(o.Open), milliseconds(bench.IndexPart(o.Recovery)), milliseconds(o.FirstRead), o.checks())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, r.violationText()+r.summary())
	return err
}

func texts(cells []any) []string {
	s := make([]string, len(cells))
	for i, c := range cells {
		s[i] = fmt.Sprint(c)
	}
	return s
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

func (r *Report) violationText() string {
	var b strings.Builder
	for i := range r.Rounds {
		for _, f := range r.Rounds[i].Findings {
			if f.OK() {
				continue
			}
			fmt.Fprintf(&b, "round %d: %s: %d of %d comparisons FAILED\n", r.Rounds[i].Number, f.Check, f.Violations, f.Checked)
			for _, detail := range f.Details {
				fmt.Fprintf(&b, "  %s\n", detail)
			}
		}
	}
	return b.String()
}

func (r *Report) summary() string {
	var transactions, orders int64
	for i := range r.Rounds {
		transactions += r.Rounds[i].Acks.Transactions
		orders += r.Rounds[i].Acks.NewOrders
	}
	outcome := "all there and consistent"
	if n := r.violations(); n > 0 {
		outcome = fmt.Sprintf("%d VIOLATIONS", n)
	}
	return fmt.Sprintf("%d transactions acknowledged, %d of them new-orders: %s; loaded in %.1f s, %.1f s in all\n",
		transactions, orders, outcome, r.Load.Seconds(), r.Total.Seconds())
}

// Metrics returns the same values for machines.
func (r *Report) Metrics(strategy string) []bench.Metric {
	m := metrics{strategy: strategy}
	m.add("load", r.Load.Seconds(), "s")
	for i := range r.Rounds {
		m.addRound(&r.Rounds[i])
	}
	m.add("violations", float64(r.violations()), "1")
	m.add("total", r.Total.Seconds(), "s")
	return m.list
}

type metrics struct {
	strategy string
	list     []bench.Metric
}

func (m *metrics) add(name string, value float64, unit string) {
	m.list = append(m.list, bench.Metric{Name: "demo/" + name, Strategy: m.strategy, Value: value, Unit: unit})
}

func (m *metrics) addRound(r *Round) {
	add := func(name string, value float64, unit string) {
		m.add(fmt.Sprintf("round=%d/%s", r.Number, name), value, unit)
	}
	const perSecond = 1e3 // milliseconds
	add("ran", r.Ran.Seconds(), "s")
	add("transactions", float64(r.Acks.Transactions), "1")
	add("orders-acknowledged", float64(r.Acks.NewOrders), "1")
	add("orders-found", float64(r.Committed), "1")
	add("orders-rate", r.Rate(), "1/min")
	add("rows", float64(r.Rows), "1")
	add("log", float64(r.Stats.LogBytes), "B")
	add("tail-records", float64(r.Recovery.RecordsReplayed), "1")
	add("tail", float64(r.Recovery.TailBytes), "B")
	add("open", r.Open.Seconds()*perSecond, "ms")
	add("first-read", r.FirstRead.Seconds()*perSecond, "ms")
	add("open-indexes", bench.IndexPart(r.Recovery).Seconds()*perSecond, "ms")
	for _, p := range r.Recovery.Phases {
		add("open/"+p.Name, p.Duration.Seconds()*perSecond, "ms")
	}
	add("violations", float64(r.Violations()), "1")
}
