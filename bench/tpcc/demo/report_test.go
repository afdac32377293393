package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

func testReport(violations int64) Report {
	round := Round{
		Number:    1,
		Ran:       1500 * time.Millisecond,
		Acks:      Acks{Transactions: 100, NewOrders: 45},
		Rows:      1234,
		Committed: 46,
		Open:      2500 * time.Microsecond,
		FirstRead: 2600 * time.Microsecond,
		Findings:  []tpcc.Finding{{Check: "condition 1"}, {Check: "receipts", Checked: 9}},
	}
	round.Recovery.RecordsReplayed = 77
	round.Recovery.Phases = []rekindle.Phase{{Name: "replay", Duration: time.Millisecond}, {Name: "index/item", Duration: 1500 * time.Microsecond}}
	round.Stats.LogBytes = 3 << 20
	if violations > 0 {
		f := &round.Findings[1]
		f.Violations, f.Details = violations, []string{"order 5 is not there"}
	}
	return Report{Load: 2 * time.Second, Total: 5 * time.Second, Rounds: []Round{round}}
}

func TestTable(t *testing.T) {
	report := testReport(0)
	var out strings.Builder
	require.NoError(t, report.WriteTable(&out))
	require.Equal(t, strings.TrimPrefix(`
  round        ran  tx acked  orders acked  orders found  orders/min  rows  log MiB  tail records    open  of it indexes  first read  checks
      1  1500.0 ms       100            45            46        1800  1234      3.0            77  2.5 ms         1.5 ms      2.6 ms    2 ok
100 transactions acknowledged, 45 of them new-orders: all there and consistent; loaded in 2.0 s, 5.0 s in all
`, "\n"), out.String())
}

func TestTableOfAViolation(t *testing.T) {
	report := testReport(3)
	var out strings.Builder
	require.NoError(t, report.WriteTable(&out))
	require.Contains(t, out.String(), "1 of 2 FAILED")
	require.Contains(t, out.String(), "round 1: receipts: 3 of 9 comparisons FAILED\n  order 5 is not there\n")
	require.Contains(t, out.String(), "3 VIOLATIONS")
	require.False(t, report.OK())
}

func TestMetrics(t *testing.T) {
	report := testReport(3)
	byName := map[string]bench.Metric{}
	for _, m := range report.Metrics("rebuild") {
		require.NotContains(t, byName, m.Name)
		require.Equal(t, "rebuild", m.Strategy)
		byName[m.Name] = m
	}
	require.Equal(t, bench.Metric{Name: "demo/round=1/first-read", Strategy: "rebuild", Value: 2.6, Unit: "ms"},
		byName["demo/round=1/first-read"])
	require.EqualValues(t, 1, byName["demo/round=1/open/replay"].Value)
	require.EqualValues(t, 1.5, byName["demo/round=1/open-indexes"].Value)
	require.EqualValues(t, 1800, byName["demo/round=1/orders-rate"].Value)
	require.EqualValues(t, 77, byName["demo/round=1/tail-records"].Value)
	require.EqualValues(t, 3, byName["demo/violations"].Value)
	require.EqualValues(t, 5, byName["demo/total"].Value)
}

func TestRateOfARoundThatDidNotRun(t *testing.T) {
	require.Zero(t, new(Round).Rate())
}
