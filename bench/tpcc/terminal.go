package tpcc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rekindledb/rekindle"
)

// Terminal runs one transaction after the other (2.2). It belongs to one
// goroutine; several terminals share the Tables.
type Terminal struct {
	random
	tables    *Tables
	scale     Scale
	constants Constants
	warehouse int32
	district  int32 // of the stock-level transactions (2.8.1.1)
	deck      []Kind
	now       func() time.Time
}

// TerminalOptions say which terminal NewTerminal makes.
type TerminalOptions struct {
	Scale     Scale
	Constants Constants
	Seed      uint64
	Number    int // from 0; terminals are spread over warehouses first, then over districts
}

// NewTerminal makes a terminal at its home warehouse and district.
func NewTerminal(t *Tables, o TerminalOptions) *Terminal {
	home, row := o.Number%o.Scale.Warehouses, o.Number/o.Scale.Warehouses
	return &Terminal{
		random:    newRandom(o.Seed, uint64(o.Number)),
		tables:    t,
		scale:     o.Scale,
		constants: o.Constants,
		warehouse: int32(home) + 1,
		district:  int32(row%o.Scale.Districts) + 1,
		now:       time.Now,
	}
}

// Result is one transaction that ended as the standard wants it to.
type Result struct {
	Kind       Kind
	RolledBack bool      // a new-order with an unused item; nothing was written
	Receipts   []Receipt // what must be found later
}

// Next runs the next transaction of the mix to its end: it returns when the
// commit is acknowledged.
func (m *Terminal) Next(ctx context.Context) (Result, error) {
	kind := m.draw()
	result, err := m.run(ctx, kind)
	if err != nil {
		return result, fmt.Errorf("tpcc %v: %w", kind, err)
	}
	return result, nil
}

// draw takes a card from the deck of 5.2.4.2: of 23 cards ten are new-orders,
// ten are payments, and there is one of each other kind.
func (m *Terminal) draw() Kind {
	if len(m.deck) == 0 {
		m.deck = slices.Concat(
			slices.Repeat([]Kind{KindNewOrder, KindPayment}, 10),
			[]Kind{KindOrderStatus, KindDelivery, KindStockLevel})
		m.Shuffle(len(m.deck), func(i, j int) { m.deck[i], m.deck[j] = m.deck[j], m.deck[i] })
	}
	last := len(m.deck) - 1
	kind := m.deck[last]
	m.deck = m.deck[:last]
	return kind
}

func (m *Terminal) run(ctx context.Context, kind Kind) (Result, error) {
	switch kind {
	case KindNewOrder:
		return m.runNewOrder(ctx)
	case KindPayment:
		return m.runPayment(ctx)
	case KindOrderStatus:
		in := m.orderStatus()
		return m.view(ctx, kind, func(tx *rekindle.Tx) error { _, err := in.run(tx, m.tables); return err })
	case KindDelivery:
		return m.runDelivery(ctx)
	default:
		in := m.stockLevel()
		return m.view(ctx, kind, func(tx *rekindle.Tx) error { _, err := in.run(tx, m.tables); return err })
	}
}

func (m *Terminal) runNewOrder(ctx context.Context) (Result, error) {
	in := m.newOrder()
	var reply newOrderReply
	err := m.update(ctx, func(tx *rekindle.Tx) (err error) {
		reply, err = in.run(tx, m.tables)
		return err
	})
	if errors.Is(err, errUnusedItem) {
		return Result{Kind: KindNewOrder, RolledBack: true}, nil
	}
	return Result{Kind: KindNewOrder, Receipts: []Receipt{{
		Kind:      KindNewOrder,
		Warehouse: in.warehouse,
		District:  in.district,
		ID:        reply.order,
		Number:    int32(len(in.lines)),
		Amount:    reply.sum,
	}}}, err
}

func (m *Terminal) runPayment(ctx context.Context) (Result, error) {
	in := m.payment()
	var history History
	err := m.update(ctx, func(tx *rekindle.Tx) (err error) {
		history, err = in.run(tx, m.tables)
		return err
	})
	return Result{Kind: KindPayment, Receipts: []Receipt{{
		Kind:      KindPayment,
		Warehouse: history.CustomerWarehouse,
		District:  history.CustomerDistrict,
		ID:        history.Customer,
		Number:    history.Payment,
		Amount:    history.Amount,
	}}}, err
}

func (m *Terminal) runDelivery(ctx context.Context) (Result, error) {
	in := m.delivery()
	var delivered []Order
	err := m.update(ctx, func(tx *rekindle.Tx) (err error) {
		delivered, err = in.run(tx, m.tables)
		return err
	})
	result := Result{Kind: KindDelivery}
	for _, o := range delivered {
		result.Receipts = append(result.Receipts, Receipt{
			Kind:      KindDelivery,
			Warehouse: o.Warehouse,
			District:  o.District,
			ID:        o.ID,
			Number:    o.Carrier.V,
		})
	}
	return result, err
}

func (m *Terminal) view(ctx context.Context, kind Kind, fn func(tx *rekindle.Tx) error) (Result, error) {
	return Result{Kind: kind}, m.tables.DB.View(ctx, fn)
}

// update goes on after the retries of Update: with one warehouse every payment
// writes the same row, so a long run of conflicts is load and not a fault.
func (m *Terminal) update(ctx context.Context, fn func(tx *rekindle.Tx) error) error {
	for {
		err := m.tables.DB.Update(ctx, fn)
		if !errors.Is(err, rekindle.ErrConflict) || ctx.Err() != nil {
			return err
		}
	}
}

func (m *Terminal) customerID() int32 {
	return int32(m.nuRand(nuCustomer, m.constants.Customer, 1, m.scale.Customers))
}

func (m *Terminal) itemID() int32 {
	return int32(m.nuRand(nuItem, m.constants.Item, 1, m.scale.Items))
}

// otherWarehouse is any but the home warehouse, which it is if there is none.
func (m *Terminal) otherWarehouse() int32 {
	if m.scale.Warehouses == 1 {
		return m.warehouse
	}
	w := m.int32(1, m.scale.Warehouses-1)
	if w >= m.warehouse {
		w++
	}
	return w
}
