package tpcc

import (
	"errors"
	"fmt"
	"time"

	"github.com/rekindledb/rekindle"
)

// errUnusedItem is how one new-order in a hundred ends: the last item that it
// asks for does not exist, and what it did so far is rolled back (2.4.1.4).
var errUnusedItem = errors.New("item number is not valid")

// newOrder is the input of the new-order transaction (2.4.1).
type newOrder struct {
	warehouse, district, customer int32
	entry                         time.Time
	lines                         []newOrderLine
}

type newOrderLine struct{ item, supply, quantity int32 }

func (m *Terminal) newOrder() newOrder {
	in := newOrder{
		warehouse: m.warehouse,
		district:  m.int32(1, m.scale.Districts),
		customer:  m.customerID(),
		entry:     m.now(),
		lines:     make([]newOrderLine, m.between(minLines, maxLines)),
	}
	for i := range in.lines {
		in.lines[i] = newOrderLine{item: m.itemID(), supply: m.supplier(), quantity: m.int32(1, 10)}
	}
	if m.percent(1) {
		in.lines[len(in.lines)-1].item = int32(m.scale.Items) + 1
	}
	return in
}

// supplier is another warehouse for one line in a hundred.
func (m *Terminal) supplier() int32 {
	if m.percent(1) {
		return m.otherWarehouse()
	}
	return m.warehouse
}

func (in *newOrder) allLocal() bool {
	for _, l := range in.lines {
		if l.supply != in.warehouse {
			return false
		}
	}
	return true
}

// newOrderReply is what the terminal would show (2.4.3.3), in part.
type newOrderReply struct {
	order   int32
	sum     Cents // of the lines
	total   Cents // with discount and tax
	branded int   // lines whose item and stock are both original
}

// run is the profile of 2.4.2.2. The district comes first, since it is the row
// that new-orders collide on.
func (in *newOrder) run(tx *rekindle.Tx, t *Tables) (newOrderReply, error) {
	district, err := in.takeNumber(tx, t)
	if err != nil {
		return newOrderReply{}, err
	}
	order := Order{
		Warehouse: in.warehouse,
		District:  in.district,
		ID:        district.NextOrder - 1,
		Customer:  in.customer,
		Entry:     in.entry,
		Lines:     int32(len(in.lines)),
		AllLocal:  in.allLocal(),
	}
	if err := in.insertOrder(tx, t, &order); err != nil {
		return newOrderReply{}, err
	}
	reply := newOrderReply{order: order.ID}
	for i, l := range in.lines {
		if err := in.orderLine(tx, t, &reply, i+1, l); err != nil {
			return newOrderReply{}, err
		}
	}
	reply.total, err = in.total(tx, t, reply.sum, district.Tax)
	return reply, err
}

// takeNumber takes the district's next order number.
func (in *newOrder) takeNumber(tx *rekindle.Tx, t *Tables) (District, error) {
	row := District{Warehouse: in.warehouse, ID: in.district}
	if err := t.District.Get(tx, &row); err != nil {
		return row, err
	}
	row.NextOrder++
	return row, t.District.Update(tx, &row)
}

func (in *newOrder) insertOrder(tx *rekindle.Tx, t *Tables, o *Order) error {
	if err := t.Order.Insert(tx, o); err != nil {
		return err
	}
	return t.NewOrder.Insert(tx, &NewOrder{Warehouse: o.Warehouse, District: o.District, Order: o.ID})
}

// orderLine takes the quantity from stock, inserts the line and adds it to the
// reply.
func (in *newOrder) orderLine(tx *rekindle.Tx, t *Tables, reply *newOrderReply, number int, l newOrderLine) error {
	item := Item{ID: l.item}
	if err := t.Item.Get(tx, &item); err != nil {
		return itemError(err)
	}
	stock := Stock{Warehouse: l.supply, Item: l.item}
	if err := t.Stock.Get(tx, &stock); err != nil {
		return err
	}
	stock.take(l.quantity, l.supply != in.warehouse)
	if err := t.Stock.Update(tx, &stock); err != nil {
		return err
	}
	line := OrderLine{
		Warehouse: in.warehouse,
		District:  in.district,
		Order:     reply.order,
		Number:    int32(number),
		Item:      l.item,
		Supply:    l.supply,
		Quantity:  l.quantity,
		Amount:    item.Price * Cents(l.quantity),
		DistInfo:  *stock.dist()[in.district-1],
	}
	reply.sum += line.Amount
	if isOriginal(item.Data) && isOriginal(stock.Data) {
		reply.branded++
	}
	return t.OrderLine.Insert(tx, &line)
}

func itemError(err error) error {
	if errors.Is(err, rekindle.ErrNotFound) {
		return fmt.Errorf("%w: %w", errUnusedItem, err)
	}
	return err
}

// take is the stock rule of 2.4.2.2: refill by 91 below 10.
func (s *Stock) take(quantity int32, remote bool) {
	s.Quantity -= quantity
	if s.Quantity < 10 {
		s.Quantity += 91
	}
	s.YTD += quantity
	s.Orders++
	if remote {
		s.RemoteOnes++
	}
}

// total applies the customer's discount and both taxes.
func (in *newOrder) total(tx *rekindle.Tx, t *Tables, sum Cents, districtTax BasisPoints) (Cents, error) {
	warehouse := Warehouse{ID: in.warehouse}
	if err := t.Warehouse.Get(tx, &warehouse); err != nil {
		return 0, err
	}
	customer := Customer{Warehouse: in.warehouse, District: in.district, ID: in.customer}
	if err := t.Customer.Get(tx, &customer); err != nil {
		return 0, err
	}
	return sum.times(one - customer.Discount).times(one + warehouse.Tax + districtTax), nil
}

func (c Cents) times(r BasisPoints) Cents { return c * Cents(r) / Cents(one) }
