package tpcc

import "fmt"

// Kind is one of the five transactions.
type Kind uint8

// The transactions, in the order of clauses 2.4 to 2.8.
const (
	KindNewOrder Kind = iota + 1
	KindPayment
	KindOrderStatus
	KindDelivery
	KindStockLevel
	kinds = iota
)

func (k Kind) String() string {
	names := [...]string{"new-order", "payment", "order-status", "delivery", "stock-level"}
	if k < 1 || int(k) > len(names) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k-1]
}

// Receipt is the least that must be found in the database once the commit of
// a transaction was acknowledged:
//
//	KindNewOrder  an order with Number lines that sum up to Amount
//	KindPayment   a history row, Number being the number of the payment
//	KindDelivery  an order that carrier Number delivered
//
// ID is the order's for KindNewOrder and KindDelivery, which has a receipt for
// each order delivered, and the customer's for KindPayment. The read-only
// kinds leave nothing, so for them the other fields are zero.
type Receipt struct {
	Kind      Kind
	Warehouse int32
	District  int32
	ID        int32
	Number    int32
	Amount    Cents
}

func (r Receipt) String() string {
	return fmt.Sprintf("%v of warehouse %d, district %d: id %d, number %d, amount %d",
		r.Kind, r.Warehouse, r.District, r.ID, r.Number, r.Amount)
}
