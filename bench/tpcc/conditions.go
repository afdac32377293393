package tpcc

import "fmt"

// maxDetails is how many violations a Finding describes.
const maxDetails = 5

// Finding is the outcome of one check.
type Finding struct {
	Check      string
	Checked    int64    // comparisons made
	Violations int64    // of them wrong
	Details    []string // the first few violations
}

// OK reports that there was no violation.
func (f *Finding) OK() bool { return f.Violations == 0 }

// Expect counts a comparison; the violation's text is made only if needed.
func (f *Finding) Expect(ok bool, format string, args ...any) {
	f.Checked++
	if ok {
		return
	}
	f.Violations++
	if len(f.Details) < maxDetails {
		f.Details = append(f.Details, fmt.Sprintf(format, args...))
	}
}

// Conditions checks the consistency conditions 1 to 10 and 12 of 3.3.2, and in
// place of condition 11, which holds only until the first delivery, that order
// numbers have no gaps.
func (a *Audit) Conditions() []Finding {
	checks := []struct {
		name string
		run  func(*Finding)
	}{
		{"1: W_YTD = sum(D_YTD)", a.condition1},
		{"2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)", a.condition2},
		{"3: NO_O_ID has no gaps", a.condition3},
		{"4: sum(O_OL_CNT) = lines of the district", a.condition4},
		{"5: O_CARRIER_ID is null = in NEW-ORDER", a.condition5},
		{"6: O_OL_CNT = lines of the order", a.condition6},
		{"7: OL_DELIVERY_D is null = O_CARRIER_ID is null", a.condition7},
		{"8: W_YTD = sum(H_AMOUNT)", a.condition8},
		{"9: D_YTD = sum(H_AMOUNT)", a.condition9},
		{"10: C_BALANCE = delivered - paid", a.condition10},
		{"11: O_ID has no gaps", a.orderNumbers},
		{"12: C_BALANCE + C_YTD_PAYMENT = delivered", a.condition12},
	}
	findings := make([]Finding, len(checks))
	for i, c := range checks {
		findings[i].Check = "condition " + c.name
		c.run(&findings[i])
	}
	return findings
}

func (a *Audit) condition1(f *Finding) {
	for id, w := range a.warehouses {
		f.Expect(w.ytd == w.districts, "warehouse %d has %d, its districts %d", id, w.ytd, w.districts)
	}
}

// condition2 takes a district without undelivered orders to satisfy the part
// about NO_O_ID.
func (a *Audit) condition2(f *Finding) {
	for id, d := range a.districts {
		ok := d.next-1 == d.lastOrder && (d.newOrders == 0 || d.lastNew == d.lastOrder)
		f.Expect(ok, "%v: next order is %d, last order %d, last new-order %d", id, d.next, d.lastOrder, d.lastNew)
	}
}

func (a *Audit) condition3(f *Finding) {
	for id, d := range a.districts {
		ok := d.newOrders == 0 || int64(d.lastNew)-int64(d.firstNew)+1 == d.newOrders
		f.Expect(ok, "%v: %d new-orders from %d to %d", id, d.newOrders, d.firstNew, d.lastNew)
	}
}

func (a *Audit) condition4(f *Finding) {
	for id, d := range a.districts {
		f.Expect(d.linesDeclared == d.lines, "%v: orders say %d lines, there are %d", id, d.linesDeclared, d.lines)
	}
}

func (a *Audit) condition5(f *Finding) {
	for id, o := range a.orders {
		ok := o.exists && o.undelivered == !o.carrier.Valid
		f.Expect(ok, "%v: exists %t, in new-order %t, has a carrier %t", id, o.exists, o.undelivered, o.carrier.Valid)
	}
}

func (a *Audit) condition6(f *Finding) {
	for id, o := range a.orders {
		f.Expect(o.linesDeclared == o.lines, "%v: says %d lines, there are %d", id, o.linesDeclared, o.lines)
	}
}

func (a *Audit) condition7(f *Finding) {
	for id, o := range a.orders {
		want := int32(0)
		if o.carrier.Valid {
			want = o.lines
		}
		f.Expect(o.linesDelivered == want, "%v: %d of %d lines delivered, want %d", id, o.linesDelivered, o.lines, want)
	}
}

func (a *Audit) condition8(f *Finding) {
	for id, w := range a.warehouses {
		f.Expect(w.ytd == w.history, "warehouse %d has %d, its history %d", id, w.ytd, w.history)
	}
}

func (a *Audit) condition9(f *Finding) {
	for id, d := range a.districts {
		f.Expect(d.ytd == d.history, "%v has %d, its history %d", id, d.ytd, d.history)
	}
}

func (a *Audit) condition10(f *Finding) {
	for id, c := range a.customers {
		ok := c.exists && c.balance == c.delivered-c.history && c.payments == c.historyRows
		f.Expect(ok, "%v: balance %d, delivered %d, paid %d in %d of %d payments",
			id, c.balance, c.delivered, c.history, c.historyRows, c.payments)
	}
}

func (a *Audit) orderNumbers(f *Finding) {
	for id, d := range a.districts {
		f.Expect(int64(d.next)-1 == d.orders, "%v: next order is %d, there are %d orders", id, d.next, d.orders)
	}
}

func (a *Audit) condition12(f *Finding) {
	for id, c := range a.customers {
		f.Expect(c.balance+c.ytdPayment == c.delivered,
			"%v: balance %d, payments %d, delivered %d", id, c.balance, c.ytdPayment, c.delivered)
	}
}
