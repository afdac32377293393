package tpcc

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestNewOrderTakesFromStockAndInsertsTheOrder(t *testing.T) {
	scale := Tiny(2)
	tables := newDatabase(t, scale)
	in := newOrder{warehouse: 1, district: 2, customer: 3, entry: testDate, lines: []newOrderLine{
		{item: 10, supply: 1, quantity: 4},
		{item: 11, supply: 2, quantity: 10},
		{item: 10, supply: 1, quantity: 1}, // the same stock row twice
	}}
	home := get(t, tables, tables.Stock, Stock{Warehouse: 1, Item: 10})
	remote := get(t, tables, tables.Stock, Stock{Warehouse: 2, Item: 11})

	var reply newOrderReply
	update(t, tables, func(tx *rekindle.Tx) {
		var err error
		reply, err = in.run(tx, tables)
		require.NoError(t, err)
	})

	next := int32(scale.Customers) + 1
	require.Equal(t, next, reply.order)
	require.Equal(t, next+1, get(t, tables, tables.District, District{Warehouse: 1, ID: 2}).NextOrder)
	order := get(t, tables, tables.Order, Order{Warehouse: 1, District: 2, ID: next})
	require.EqualValues(t, 3, order.Lines)
	require.EqualValues(t, 3, order.Customer)
	require.False(t, order.AllLocal)
	require.False(t, order.Carrier.Valid)
	require.True(t, order.Entry.Equal(testDate))
	get(t, tables, tables.NewOrder, NewOrder{Warehouse: 1, District: 2, Order: next})

	price := get(t, tables, tables.Item, Item{ID: 11}).Price
	line := get(t, tables, tables.OrderLine, OrderLine{Warehouse: 1, District: 2, Order: next, Number: 2})
	require.Equal(t, 10*price, line.Amount)
	require.Equal(t, remote.Dist02, line.DistInfo)
	require.EqualValues(t, 2, line.Supply)
	require.False(t, line.Delivered.Valid)

	home.take(4, false)
	home.take(1, false)
	remote.take(10, true)
	require.Equal(t, home, get(t, tables, tables.Stock, Stock{Warehouse: 1, Item: 10}))
	require.Equal(t, remote, get(t, tables, tables.Stock, Stock{Warehouse: 2, Item: 11}))
	requireConsistent(t, tables)
}

func TestNewOrderTotal(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	warehouse := get(t, tables, tables.Warehouse, Warehouse{ID: 1})
	warehouse.Tax = 1000
	customer := get(t, tables, tables.Customer, Customer{Warehouse: 1, District: 1, ID: 1})
	customer.Discount = 2500
	in := newOrder{warehouse: 1, district: 1, customer: 1}
	update(t, tables, func(tx *rekindle.Tx) {
		require.NoError(t, tables.Warehouse.Update(tx, &warehouse))
		require.NoError(t, tables.Customer.Update(tx, &customer))
		total, err := in.total(tx, tables, 200_00, 500)
		require.NoError(t, err)
		require.Equal(t, Cents(172_50), total, "200.00 less a quarter, plus 15 %")
	})
}

func TestStockIsRefilledBelowTen(t *testing.T) {
	for _, c := range []struct{ before, take, after int32 }{
		{20, 10, 10}, {20, 11, 100}, {10, 1, 100}, {100, 10, 90},
	} {
		s := Stock{Quantity: c.before}
		s.take(c.take, false)
		require.Equal(t, c.after, s.Quantity, "%+v", c)
		require.Equal(t, c.take, s.YTD)
		require.EqualValues(t, 1, s.Orders)
		require.Zero(t, s.RemoteOnes)
	}
}

func TestNewOrderWithAnUnusedItemLeavesNothing(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	before := all(t, tables, tables.Stock)
	in := newOrder{warehouse: 1, district: 1, customer: 1, lines: []newOrderLine{
		{item: 1, supply: 1, quantity: 1}, {item: int32(scale.Items) + 1, supply: 1, quantity: 1},
	}}
	err := tables.DB.Update(t.Context(), func(tx *rekindle.Tx) error {
		_, err := in.run(tx, tables)
		return err
	})
	require.ErrorIs(t, err, errUnusedItem)
	require.Equal(t, before, all(t, tables, tables.Stock))
	require.EqualValues(t, scale.Customers, audit(t, tables).Orders()/int64(scale.Districts))
	requireConsistent(t, tables)
}

func TestPaymentMovesMoneyEverywhere(t *testing.T) {
	scale := Tiny(2)
	tables := newDatabase(t, scale)
	in := payment{warehouse: 1, district: 2, amount: 123_45, date: testDate,
		customer: selection{warehouse: 2, district: 3, id: 4}}
	warehouse := get(t, tables, tables.Warehouse, Warehouse{ID: 1})
	district := get(t, tables, tables.District, District{Warehouse: 1, ID: 2})

	var history History
	update(t, tables, func(tx *rekindle.Tx) {
		var err error
		history, err = in.run(tx, tables)
		require.NoError(t, err)
	})

	require.Equal(t, warehouse.YTD+123_45, get(t, tables, tables.Warehouse, Warehouse{ID: 1}).YTD)
	require.Equal(t, district.YTD+123_45, get(t, tables, tables.District, District{Warehouse: 1, ID: 2}).YTD)
	customer := get(t, tables, tables.Customer, Customer{Warehouse: 2, District: 3, ID: 4})
	require.Equal(t, -initialPayment-123_45, customer.Balance)
	require.Equal(t, initialPayment+123_45, customer.YTDPayment)
	require.EqualValues(t, 2, customer.Payments)
	require.Equal(t, history, get(t, tables, tables.History, History{
		CustomerWarehouse: 2, CustomerDistrict: 3, Customer: 4, Payment: 2,
	}))
	require.Equal(t, warehouse.Name+"    "+district.Name, history.Data)
	requireConsistent(t, tables)
}

func TestPaymentNotesBadCredit(t *testing.T) {
	in := payment{warehouse: 1, district: 2, amount: 7}
	good, bad := Customer{ID: 3, Credit: goodCredit, Data: "x"}, Customer{ID: 3, Credit: badCredit, Data: "x"}
	in.pay(&good)
	require.Equal(t, "x", good.Data)
	in.pay(&bad)
	require.Equal(t, "3 0 0 2 1 7|x", bad.Data)
	for range 100 {
		in.pay(&bad)
	}
	require.Len(t, bad.Data, maxCustomerData)
}

func TestCustomerByLastNameIsTheMiddleOne(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	firsts := []string{"Eve", "Ann", "Dan", "Bob", "Cat"}
	for n, want := range map[int]string{1: "Eve", 2: "Ann", 3: "Dan", 4: "Bob", 5: "Cat"} {
		in := selection{warehouse: 1, district: int32(n), last: "SMITH"}
		update(t, tables, func(tx *rekindle.Tx) {
			for i, first := range firsts[:n] {
				row := Customer{Warehouse: 1, District: in.district, ID: int32(900 + i), Last: in.last, First: first}
				require.NoError(t, tables.Customer.Insert(tx, &row))
			}
		})
		view(t, tables, func(tx *rekindle.Tx) {
			c, err := in.find(tx, tables)
			require.NoError(t, err)
			require.Equal(t, want, c.First, "of %d", n)
		})
	}
}

func TestOrderStatusShowsTheLastOrder(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	place := newOrder{warehouse: 1, district: 1, customer: 5, entry: testDate, lines: []newOrderLine{
		{item: 1, supply: 1, quantity: 1}, {item: 2, supply: 1, quantity: 2},
	}}
	update(t, tables, func(tx *rekindle.Tx) {
		for range 2 {
			_, err := place.run(tx, tables)
			require.NoError(t, err)
		}
	})
	in := orderStatus{customer: selection{warehouse: 1, district: 1, id: 5}}
	view(t, tables, func(tx *rekindle.Tx) {
		reply, err := in.run(tx, tables)
		require.NoError(t, err)
		require.EqualValues(t, scale.Customers+2, reply.order.ID)
		require.Len(t, reply.lines, 2)
		require.EqualValues(t, 2, reply.lines[1].Quantity)
	})
}

func TestDeliveryTakesTheOldestOrderOfEachDistrict(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	oldest := int32(scale.newestDelivered()) + 1
	order := get(t, tables, tables.Order, Order{Warehouse: 1, District: 1, ID: oldest})
	in := delivery{warehouse: 1, carrier: 7, districts: scale.Districts, date: testDate.Add(time.Hour)}

	var delivered []Order
	update(t, tables, func(tx *rekindle.Tx) {
		var err error
		delivered, err = in.run(tx, tables)
		require.NoError(t, err)
	})

	require.Len(t, delivered, scale.Districts)
	for i, o := range delivered {
		require.Equal(t, key{1, int32(i) + 1, oldest}, key{o.Warehouse, o.District, o.ID})
		require.Equal(t, rekindle.Null[int32]{V: 7, Valid: true}, get(t, tables, tables.Order, o).Carrier)
	}
	var sum Cents
	for _, l := range all(t, tables, tables.OrderLine) {
		if l.District == 1 && l.Order == oldest {
			sum += l.Amount
			require.True(t, l.Delivered.Valid)
			require.True(t, l.Delivered.V.Equal(testDate.Add(time.Hour)))
		}
	}
	customer := get(t, tables, tables.Customer, Customer{Warehouse: 1, District: 1, ID: order.Customer})
	require.Equal(t, -initialPayment+sum, customer.Balance)
	require.EqualValues(t, 1, customer.Deliveries)
	view(t, tables, func(tx *rekindle.Tx) {
		err := tables.NewOrder.Get(tx, &NewOrder{Warehouse: 1, District: 1, Order: oldest})
		require.ErrorIs(t, err, rekindle.ErrNotFound)
	})
	requireConsistent(t, tables)
}

func TestDeliverySkipsADistrictWithNothingToDeliver(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	in := delivery{warehouse: 1, carrier: 1, districts: scale.Districts, date: testDate}
	for i := range scale.undelivered() + 1 {
		update(t, tables, func(tx *rekindle.Tx) {
			delivered, err := in.run(tx, tables)
			require.NoError(t, err)
			require.Equal(t, i < scale.undelivered(), len(delivered) == scale.Districts, "delivery %d", i)
		})
	}
	require.Empty(t, all(t, tables, tables.NewOrder))
	requireConsistent(t, tables)
}

func TestStockLevelCountsLowItemsOfRecentOrders(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	place := newOrder{warehouse: 1, district: 1, customer: 5, entry: testDate, lines: []newOrderLine{
		{item: 1, supply: 1, quantity: 1}, {item: 2, supply: 1, quantity: 2}, {item: 1, supply: 1, quantity: 1},
	}}
	update(t, tables, func(tx *rekindle.Tx) {
		for range recentOrders {
			_, err := place.run(tx, tables)
			require.NoError(t, err)
		}
		for i, quantity := range []int32{12, 15} {
			stock := Stock{Warehouse: 1, Item: int32(i) + 1}
			require.NoError(t, tables.Stock.Get(tx, &stock))
			stock.Quantity = quantity
			require.NoError(t, tables.Stock.Update(tx, &stock))
		}
	})
	for threshold, want := range map[int32]int{12: 0, 13: 1, 15: 1, 16: 2} {
		in := stockLevel{warehouse: 1, district: 1, threshold: threshold}
		view(t, tables, func(tx *rekindle.Tx) {
			low, err := in.run(tx, tables)
			require.NoError(t, err)
			require.Equal(t, want, low, "threshold %d", threshold)
		})
	}
}

func TestUnknownCustomer(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	for _, s := range []selection{
		{warehouse: 1, district: 1, last: "NOBODY"}, {warehouse: 1, district: 1, id: 999},
	} {
		view(t, tables, func(tx *rekindle.Tx) {
			_, err := s.find(tx, tables)
			require.True(t, errors.Is(err, errNoRow) || errors.Is(err, rekindle.ErrNotFound), "%v", err)
		})
	}
}
