package torture

import (
	"encoding/json"
	"maps"
	"os"
	"slices"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

// Account is a set of acknowledged transactions.
type Account struct {
	Numbers  map[int32]int64 `json:"numbers,omitempty"` // of counters: the last one of each client
	Receipts []tpcc.Receipt  `json:"receipts,omitempty"`
}

func (a *Account) add(ack Ack) {
	if ack.Number > 0 {
		if a.Numbers == nil {
			a.Numbers = map[int32]int64{}
		}
		a.Numbers[ack.Client] = max(a.Numbers[ack.Client], ack.Number)
	}
	a.Receipts = append(a.Receipts, ack.Receipts...)
}

// Ledger is what the parent knows of a database.
type Ledger struct {
	Durable  Account `json:"durable"`  // must be there
	Loose    []Ack   `json:"loose"`    // acknowledged in this life without a wait for the disk: may be there
	Doubtful []Ack   `json:"doubtful"` // the same of lives since the last check
	Checked  bool    `json:"checked"`  // there was a check, so the tables are there

	// Known is what the last check counted, and since then were Acked acknowledged
	// that count, and Lives processes had clients.
	Known int64 `json:"known"`
	Acked int64 `json:"acked"`
	Lives int64 `json:"lives"`

	strict   bool  // commits of this life are durable when they are acknowledged
	settling int   // length of Loose when the wait began
	fresh    int64 // acknowledged since the last check, whether they count or not
}

// begin notes that a process begins.
func (l *Ledger) begin(strict bool) {
	l.Lives++
	l.strict = strict
	l.Doubtful = append(l.Doubtful, l.Loose...)
	l.Loose, l.settling = nil, 0
}

func (l *Ledger) ack(a Ack) {
	l.fresh++
	if a.counts() {
		l.Acked++
	}
	if l.strict {
		l.Durable.add(a)
	} else {
		l.Loose = append(l.Loose, a)
	}
}

// counts reports whether a transaction is counted by checks: deliveries and
// transactions that change nothing are not.
func (a *Ack) counts() bool {
	return a.Number > 0 || len(a.Receipts) > 0 && a.Receipts[0].Kind != tpcc.KindDelivery
}

func (l *Ledger) settle(s Settle) {
	switch s {
	case settleBegin:
		l.settling = len(l.Loose)
	case settleEnd:
		for _, a := range l.Loose[:l.settling] {
			l.Durable.add(a)
		}
		l.Loose = slices.Clone(l.Loose[l.settling:])
		l.settling = 0
	}
}

// settleAll is for a Close that has returned.
func (l *Ledger) settleAll() {
	l.settle(settleBegin)
	l.settle(settleEnd)
}

// checked takes over what a check has found: recovery made it durable.
func (l *Ledger) checked(v *Verdict) {
	l.Durable.Numbers = v.Numbers
	l.Durable.Receipts = append(l.Durable.Receipts, v.Kept...)
	l.Loose, l.Doubtful, l.Checked = nil, nil, true
	l.Known, l.Acked, l.Lives, l.fresh = v.Counted, 0, 0, 0
}

func (l *Ledger) save(name string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

func loadLedger(name string) (*Ledger, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	l := new(Ledger)
	return l, json.Unmarshal(text, l)
}

// all is what was acknowledged, promised or not.
func (l *Ledger) all() Account {
	all := Account{Numbers: maps.Clone(l.Durable.Numbers)}
	for _, a := range slices.Concat(l.Doubtful, l.Loose) {
		all.add(a)
	}
	return all
}

// looseReceipts are those of transactions that nobody promised, each with
// something to look for.
func (l *Ledger) looseReceipts() [][]tpcc.Receipt {
	var loose [][]tpcc.Receipt
	for _, a := range slices.Concat(l.Doubtful, l.Loose) {
		if len(a.Receipts) > 0 {
			loose = append(loose, a.Receipts)
		}
	}
	return loose
}
