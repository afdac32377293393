package tpcc

import (
	"strings"
	"time"

	"github.com/rekindledb/rekindle"
)

// The initial rows of 4.3.3.1, one function a table.

const (
	initialPayment Cents = 10_00
	initialBalance Cents = -10_00
	initialCredit  Cents = 50_000_00
)

// generator makes rows of one part of the database with its own random
// numbers, so that parts made at the same time come out the same in any order.
type generator struct {
	random
	scale     Scale
	constants Constants
	now       time.Time
}

func (g *generator) warehouse(w int) Warehouse {
	return Warehouse{
		ID:      int32(w),
		Name:    g.alpha(6, 10),
		Address: g.address(),
		Tax:     g.tax(),
		YTD:     g.districtYTD() * Cents(g.scale.Districts),
	}
}

func (g *generator) tax() BasisPoints { return BasisPoints(g.between(0, 2000)) }

func (g *generator) district(w, d int) District {
	return District{
		Warehouse: int32(w),
		ID:        int32(d),
		Name:      g.alpha(6, 10),
		Address:   g.address(),
		Tax:       g.tax(),
		YTD:       g.districtYTD(),
		NextOrder: int32(g.scale.Customers) + 1,
	}
}

// districtYTD is 30,000.00 in Full, where it is also the sum of the initial
// payments of 3,000 customers; a smaller scale keeps the second.
func (g *generator) districtYTD() Cents { return initialPayment * Cents(g.scale.Customers) }

func (g *generator) customer(w, d, c int) Customer {
	return Customer{
		Warehouse:   int32(w),
		District:    int32(d),
		ID:          int32(c),
		First:       g.alpha(8, 16),
		Middle:      "OE",
		Last:        g.customerName(c),
		Address:     g.address(),
		Phone:       g.number(16, 16),
		Since:       g.now,
		Credit:      g.credit(),
		CreditLimit: initialCredit,
		Discount:    BasisPoints(g.between(0, 5000)),
		Balance:     initialBalance,
		YTDPayment:  initialPayment,
		Payments:    1,
		Data:        g.alpha(300, 500),
	}
}

// customerName gives every name to one of the first customers, so that each
// name exists, and draws those of the others.
func (g *generator) customerName(c int) string {
	if c <= g.scale.names() {
		return lastName(c - 1)
	}
	return lastName(g.nuRand(nuLast, g.constants.Last, 0, g.scale.names()-1))
}

const (
	goodCredit = "GC"
	badCredit  = "BC"
)

func (g *generator) credit() string {
	if g.percent(10) {
		return badCredit
	}
	return goodCredit
}

func (g *generator) history(c *Customer) History {
	return History{
		CustomerWarehouse: c.Warehouse,
		CustomerDistrict:  c.District,
		Customer:          c.ID,
		Payment:           c.Payments,
		Warehouse:         c.Warehouse,
		District:          c.District,
		Date:              g.now,
		Amount:            initialPayment,
		Data:              g.alpha(12, 24),
	}
}

// order makes order o of a district for the customer, with its lines.
func (g *generator) order(w, d, o, customer int) (Order, []OrderLine) {
	ord := Order{
		Warehouse: int32(w),
		District:  int32(d),
		ID:        int32(o),
		Customer:  int32(customer),
		Entry:     g.now,
		Lines:     g.int32(minLines, maxLines),
		AllLocal:  true,
	}
	if g.delivered(o) {
		ord.Carrier = rekindle.Null[int32]{V: g.carrier(), Valid: true}
	}
	lines := make([]OrderLine, ord.Lines)
	for i := range lines {
		lines[i] = g.orderLine(&ord, i+1)
	}
	return ord, lines
}

func (g *generator) delivered(o int) bool { return o <= g.scale.newestDelivered() }

func (r random) carrier() int32 { return r.int32(1, 10) }

func (g *generator) orderLine(o *Order, number int) OrderLine {
	l := OrderLine{
		Warehouse: o.Warehouse,
		District:  o.District,
		Order:     o.ID,
		Number:    int32(number),
		Item:      g.int32(1, g.scale.Items),
		Supply:    o.Warehouse,
		Quantity:  5,
		DistInfo:  g.alpha(24, 24),
	}
	if o.Carrier.Valid {
		l.Delivered = rekindle.Null[time.Time]{V: o.Entry, Valid: true}
	} else {
		l.Amount = Cents(g.between(1, 9_999_99))
	}
	return l
}

func (g *generator) item(i int) Item {
	return Item{
		ID:    int32(i),
		Image: g.int32(1, 10_000),
		Name:  g.alpha(14, 24),
		Price: Cents(g.between(1_00, 100_00)),
		Data:  g.data(),
	}
}

func (g *generator) stock(w, i int) Stock {
	s := Stock{
		Warehouse: int32(w),
		Item:      int32(i),
		Quantity:  g.int32(10, 100),
		Data:      g.data(),
	}
	for _, text := range s.dist() {
		*text = g.alpha(24, 24)
	}
	return s
}

func isOriginal(data string) bool { return strings.Contains(data, original) }
