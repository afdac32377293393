package tpcc

// Receipts checks that what acknowledged transactions left is there: whole
// orders, payments and deliveries.
func (a *Audit) Receipts(receipts []Receipt) Finding {
	f := Finding{Check: "acknowledged transactions are there"}
	for _, r := range receipts {
		switch r.Kind {
		case KindNewOrder:
			a.verifyOrder(&f, r)
		case KindPayment:
			a.verifyPayment(&f, r)
		case KindDelivery:
			a.verifyDelivery(&f, r)
		}
	}
	return f
}

func (a *Audit) verifyOrder(f *Finding, r Receipt) {
	o := a.orders[orderKey{r.Warehouse, r.District, r.ID}]
	if o == nil || !o.exists {
		f.Expect(false, "%v: no such order", r)
		return
	}
	ok := o.linesDeclared == r.Number && o.lines == r.Number && o.amount == r.Amount
	f.Expect(ok, "%v: the order says %d lines, has %d over %d", r, o.linesDeclared, o.lines, o.amount)
}

func (a *Audit) verifyPayment(f *Finding, r Receipt) {
	amount, found := a.payments[paymentKey{customerKey{r.Warehouse, r.District, r.ID}, r.Number}]
	f.Expect(found && amount == r.Amount, "%v: history row found %t, amount %d", r, found, amount)
}

func (a *Audit) verifyDelivery(f *Finding, r Receipt) {
	o := a.orders[orderKey{r.Warehouse, r.District, r.ID}]
	if o == nil || !o.exists {
		f.Expect(false, "%v: no such order", r)
		return
	}
	ok := o.carrier.Valid && o.carrier.V == r.Number && !o.undelivered
	f.Expect(ok, "%v: carrier %v, in new-order %t", r, o.carrier, o.undelivered)
}
