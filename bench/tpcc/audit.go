package tpcc

import (
	"context"
	"fmt"

	"github.com/rekindledb/rekindle"
)

type (
	districtKey struct{ warehouse, district int32 }
	orderKey    struct{ warehouse, district, order int32 }
	customerKey struct{ warehouse, district, customer int32 }
	paymentKey  struct {
		customerKey
		payment int32
	}
)

// Audit is what the checks need of a database, read in one transaction by
// primary key. It takes some 100 bytes an order, customer and payment.
type Audit struct {
	warehouses map[int32]*warehouseAudit
	districts  map[districtKey]*districtAudit
	orders     map[orderKey]*orderAudit
	customers  map[customerKey]*customerAudit
	payments   map[paymentKey]Cents
}

type warehouseAudit struct{ ytd, districts, history Cents }

type districtAudit struct {
	ytd, history         Cents
	next                 int32
	orders, newOrders    int64
	lastOrder            int32
	firstNew, lastNew    int32
	linesDeclared, lines int64
}

type orderAudit struct {
	exists         bool
	customer       customerKey
	carrier        rekindle.Null[int32]
	undelivered    bool // has a NEW-ORDER row
	linesDeclared  int32
	lines          int32
	linesDelivered int32
	amount         Cents
	deliveredSum   Cents
}

type customerAudit struct {
	exists              bool
	balance, ytdPayment Cents
	payments            int32
	history, delivered  Cents
	historyRows         int32
}

// ReadAudit reads all tables but ITEM and STOCK, which no condition names. A
// row that refers to a missing one is kept: that is for the checks to find.
func ReadAudit(ctx context.Context, t *Tables) (a *Audit, err error) {
	err = t.DB.View(ctx, func(tx *rekindle.Tx) error {
		a, err = readAudit(tx, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("audit tpcc: %w", err)
	}
	return a, nil
}

func readAudit(tx *rekindle.Tx, t *Tables) (*Audit, error) {
	a := &Audit{
		warehouses: map[int32]*warehouseAudit{},
		districts:  map[districtKey]*districtAudit{},
		orders:     map[orderKey]*orderAudit{},
		customers:  map[customerKey]*customerAudit{},
		payments:   map[paymentKey]Cents{},
	}
	if err := a.read(tx, t); err != nil {
		return nil, err
	}
	a.charge()
	return a, nil
}

func (a *Audit) read(tx *rekindle.Tx, t *Tables) error {
	steps := []func() error{
		func() error { return each(tx, t.Warehouse, a.addWarehouse) },
		func() error { return each(tx, t.District, a.addDistrict) },
		func() error { return each(tx, t.Customer, a.addCustomer) },
		func() error { return each(tx, t.History, a.addHistory) },
		func() error { return each(tx, t.NewOrder, a.addNewOrder) },
		func() error { return each(tx, t.Order, a.addOrder) },
		func() error { return each(tx, t.OrderLine, a.addOrderLine) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func each[T any](tx *rekindle.Tx, t *rekindle.Table[T], add func(*T)) error {
	for row, err := range t.All(tx) {
		if err != nil {
			return err
		}
		add(&row)
	}
	return nil
}

// Orders is the number of orders ever placed, the initial ones included.
func (a *Audit) Orders() int64 {
	var n int64
	for _, d := range a.districts {
		n += d.orders
	}
	return n
}

// Payments is the number of payments ever made, the initial ones included.
func (a *Audit) Payments() int64 { return int64(len(a.payments)) }

// entry returns the value at key and makes it if need be.
func entry[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

func (a *Audit) addWarehouse(r *Warehouse) { entry(a.warehouses, r.ID).ytd = r.YTD }

func (a *Audit) addDistrict(r *District) {
	d := entry(a.districts, districtKey{r.Warehouse, r.ID})
	d.ytd, d.next = r.YTD, r.NextOrder
	entry(a.warehouses, r.Warehouse).districts += r.YTD
}

func (a *Audit) addCustomer(r *Customer) {
	c := entry(a.customers, customerKey{r.Warehouse, r.District, r.ID})
	c.exists = true
	c.balance, c.ytdPayment, c.payments = r.Balance, r.YTDPayment, r.Payments
}

func (a *Audit) addHistory(r *History) {
	key := customerKey{r.CustomerWarehouse, r.CustomerDistrict, r.Customer}
	c := entry(a.customers, key)
	c.history += r.Amount
	c.historyRows++
	a.payments[paymentKey{key, r.Payment}] = r.Amount
	entry(a.districts, districtKey{r.Warehouse, r.District}).history += r.Amount
	entry(a.warehouses, r.Warehouse).history += r.Amount
}

func (a *Audit) addNewOrder(r *NewOrder) {
	d := entry(a.districts, districtKey{r.Warehouse, r.District})
	if d.newOrders == 0 {
		d.firstNew = r.Order
	}
	d.newOrders++
	d.lastNew = r.Order
	entry(a.orders, orderKey{r.Warehouse, r.District, r.Order}).undelivered = true
}

func (a *Audit) addOrder(r *Order) {
	o := entry(a.orders, orderKey{r.Warehouse, r.District, r.ID})
	o.exists = true
	o.customer = customerKey{r.Warehouse, r.District, r.Customer}
	o.carrier, o.linesDeclared = r.Carrier, r.Lines
	d := entry(a.districts, districtKey{r.Warehouse, r.District})
	d.orders++
	d.lastOrder = r.ID
	d.linesDeclared += int64(r.Lines)
}

func (a *Audit) addOrderLine(r *OrderLine) {
	entry(a.districts, districtKey{r.Warehouse, r.District}).lines++
	o := entry(a.orders, orderKey{r.Warehouse, r.District, r.Order})
	o.lines++
	o.amount += r.Amount
	if r.Delivered.Valid {
		o.linesDelivered++
		o.deliveredSum += r.Amount
	}
}

// charge adds the delivered lines to their customers, which takes the orders
// to be complete.
func (a *Audit) charge() {
	for _, o := range a.orders {
		if o.exists {
			entry(a.customers, o.customer).delivered += o.deliveredSum
		}
	}
}
