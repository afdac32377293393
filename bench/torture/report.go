package torture

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

// Report counts what a run did.
type Report struct {
	Took      time.Duration
	Rounds    int
	Databases int
	Kills     map[string]int // by phase, and step of the opening
	Cuts      int            // of power

	Acknowledged int64 // transactions
	Confirmed    int64 // of them, found by a check
	Forgone      int64 // of them, not found and not promised
	Lost         int64 // of them, not found although promised
	Extra        int64 // transactions found that nobody ran

	Opened   int64 // recoveries that ended before a kill, without those of checks
	Checks   int64
	Replayed int64 // records, by the recoveries of checks
	Work     Work
}

func newReport() *Report { return &Report{Kills: map[string]int{}} }

func (r *Report) killed(v *victim, at stage) {
	if at.phase == Closed {
		r.Kills["after the close"]++
	} else {
		r.Kills[at.String()]++
	}
	r.Acknowledged += v.acked
	r.Work.add(v.work)
	if v.opened {
		r.Opened++
	}
}

func (r *Report) checked(v *Verdict) {
	r.Checks++
	r.Confirmed += v.Confirmed
	r.Forgone += v.Forgone
	r.Lost += v.Lost
	r.Extra += v.Extra
	r.Replayed += v.Replayed
}

// Write writes the counts for people.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", args...) } // to memory
	kills := 0
	for _, n := range r.Kills {
		kills += n
	}
	line("rounds", "%d in %.1f s, on %d databases", r.Rounds, r.Took.Seconds(), r.Databases)
	line("kills", "%d", kills)
	for _, phase := range slices.Sorted(maps.Keys(r.Kills)) {
		line("  "+phase, "%d", r.Kills[phase])
	}
	line("power cuts", "%d", r.Cuts)
	line("transactions acknowledged", "%d", r.Acknowledged)
	line("  found by a check", "%d", r.Confirmed)
	line("  gone, relaxed durability", "%d", r.Forgone)
	line("  LOST", "%d", r.Lost)
	line("transactions from nowhere", "%d", r.Extra)
	line("recoveries", "%d, and %d of checks with %d records replayed", r.Opened, r.Checks, r.Replayed)
	line("checkpoints", "%d", r.Work.Checkpoints)
	line("log segments removed", "%d", r.Work.Segments)
	line("rows moved by compaction", "%d", r.Work.Moved)
	line("rows frozen", "%d", r.Work.Frozen)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// initialCount is what a check counts right after the load of TPC-C.
func initialCount(s tpcc.Scale) int64 {
	const orderAndPayment = 2 // of each customer
	return orderAndPayment * int64(s.Warehouses) * int64(s.Districts) * int64(s.Customers)
}
