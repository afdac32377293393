package tpcc

import (
	"errors"
	"time"

	"github.com/rekindledb/rekindle"
)

// delivery is the input of the delivery transaction (2.7.1).
type delivery struct {
	warehouse, carrier int32
	districts          int
	date               time.Time
}

func (m *Terminal) delivery() delivery {
	return delivery{
		warehouse: m.warehouse,
		carrier:   m.carrier(),
		districts: m.scale.Districts,
		date:      m.now(),
	}
}

// run delivers the oldest order of each district (2.7.4.2) and returns them; a
// district without one is skipped.
func (in *delivery) run(tx *rekindle.Tx, t *Tables) ([]Order, error) {
	delivered := make([]Order, 0, in.districts)
	for d := 1; d <= in.districts; d++ {
		o, err := in.deliver(tx, t, int32(d))
		if errors.Is(err, errNoRow) {
			continue
		}
		if err != nil {
			return nil, err
		}
		delivered = append(delivered, o)
	}
	return delivered, nil
}

// deliver returns errNoRow when the district has nothing to deliver.
func (in *delivery) deliver(tx *rekindle.Tx, t *Tables, district int32) (Order, error) {
	oldest, err := first(t.NewOrder.Scan(tx, rekindle.Query{
		Prefix: rekindle.Key(in.warehouse, district),
		Limit:  1,
	}))
	if err != nil {
		return Order{}, err
	}
	if err := t.NewOrder.Delete(tx, &oldest); err != nil {
		return Order{}, err
	}
	order := Order{Warehouse: in.warehouse, District: district, ID: oldest.Order}
	if err := t.Order.Get(tx, &order); err != nil {
		return order, err
	}
	order.Carrier = rekindle.Null[int32]{V: in.carrier, Valid: true}
	if err := t.Order.Update(tx, &order); err != nil {
		return order, err
	}
	sum, err := in.deliverLines(tx, t, &order)
	if err != nil {
		return order, err
	}
	return order, in.charge(tx, t, &order, sum)
}

// deliverLines dates the lines and returns the sum of their amounts.
func (in *delivery) deliverLines(tx *rekindle.Tx, t *Tables, o *Order) (Cents, error) {
	lines, err := o.lines(tx, t)
	if err != nil {
		return 0, err
	}
	var sum Cents
	for i := range lines {
		l := &lines[i]
		sum += l.Amount
		l.Delivered = rekindle.Null[time.Time]{V: in.date, Valid: true}
		if err := t.OrderLine.Update(tx, l); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func (in *delivery) charge(tx *rekindle.Tx, t *Tables, o *Order, sum Cents) error {
	customer := Customer{Warehouse: o.Warehouse, District: o.District, ID: o.Customer}
	if err := t.Customer.Get(tx, &customer); err != nil {
		return err
	}
	customer.Balance += sum
	customer.Deliveries++
	return t.Customer.Update(tx, &customer)
}
