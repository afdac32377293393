package tpcc

import (
	"github.com/rekindledb/rekindle"
)

// orderStatus is the input of the order-status transaction (2.6.1).
type orderStatus struct{ customer selection }

func (m *Terminal) orderStatus() orderStatus {
	return orderStatus{customer: m.selection(m.warehouse, m.int32(1, m.scale.Districts))}
}

// orderStatusReply is a customer's last order.
type orderStatusReply struct {
	customer Customer
	order    Order
	lines    []OrderLine
}

// run is the profile of 2.6.2.2. Every customer has an initial order.
func (in *orderStatus) run(tx *rekindle.Tx, t *Tables) (orderStatusReply, error) {
	var reply orderStatusReply
	var err error
	reply.customer, err = in.customer.find(tx, t)
	if err != nil {
		return reply, err
	}
	c := &reply.customer
	reply.order, err = first(t.Order.Scan(tx, rekindle.Query{
		Index:   "customer",
		Prefix:  rekindle.Key(c.Warehouse, c.District, c.ID),
		Reverse: true,
		Limit:   1,
	}))
	if err != nil {
		return reply, err
	}
	reply.lines, err = reply.order.lines(tx, t)
	return reply, err
}

func (o *Order) lines(tx *rekindle.Tx, t *Tables) ([]OrderLine, error) {
	return collect(t.OrderLine.Scan(tx, rekindle.Query{
		Prefix: rekindle.Key(o.Warehouse, o.District, o.ID),
	}))
}
