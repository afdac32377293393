package tpcc

import (
	"fmt"
	"time"

	"github.com/rekindledb/rekindle"
)

// maxCustomerData is the length that C_DATA is cut to (2.5.2.2).
const maxCustomerData = 500

// payment is the input of the payment transaction (2.5.1).
type payment struct {
	warehouse, district int32
	customer            selection
	amount              Cents
	date                time.Time
}

func (m *Terminal) payment() payment {
	in := payment{
		warehouse: m.warehouse,
		district:  m.int32(1, m.scale.Districts),
		amount:    Cents(m.between(1_00, 5_000_00)),
		date:      m.now(),
	}
	if m.percent(85) {
		in.customer = m.selection(in.warehouse, in.district)
	} else {
		in.customer = m.selection(m.otherWarehouse(), m.int32(1, m.scale.Districts))
	}
	return in
}

// run is the profile of 2.5.2.2. The warehouse comes first, since it is the
// row that payments collide on. It returns the row inserted in HISTORY.
func (in *payment) run(tx *rekindle.Tx, t *Tables) (History, error) {
	warehouse := Warehouse{ID: in.warehouse}
	if err := t.Warehouse.Get(tx, &warehouse); err != nil {
		return History{}, err
	}
	warehouse.YTD += in.amount
	if err := t.Warehouse.Update(tx, &warehouse); err != nil {
		return History{}, err
	}
	district := District{Warehouse: in.warehouse, ID: in.district}
	if err := t.District.Get(tx, &district); err != nil {
		return History{}, err
	}
	district.YTD += in.amount
	if err := t.District.Update(tx, &district); err != nil {
		return History{}, err
	}
	customer, err := in.customer.find(tx, t)
	if err != nil {
		return History{}, err
	}
	in.pay(&customer)
	if err := t.Customer.Update(tx, &customer); err != nil {
		return History{}, err
	}
	history := in.history(&customer, warehouse.Name+"    "+district.Name)
	return history, t.History.Insert(tx, &history)
}

func (in *payment) pay(c *Customer) {
	c.Balance -= in.amount
	c.YTDPayment += in.amount
	c.Payments++
	if c.Credit == badCredit {
		note := fmt.Sprintf("%d %d %d %d %d %d|", c.ID, c.District, c.Warehouse, in.district, in.warehouse, in.amount)
		c.Data = note + c.Data
		c.Data = c.Data[:min(len(c.Data), maxCustomerData)]
	}
}

func (in *payment) history(c *Customer, data string) History {
	return History{
		CustomerWarehouse: c.Warehouse,
		CustomerDistrict:  c.District,
		Customer:          c.ID,
		Payment:           c.Payments,
		Warehouse:         in.warehouse,
		District:          in.district,
		Date:              in.date,
		Amount:            in.amount,
		Data:              data,
	}
}
