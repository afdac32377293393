package tpcc

import (
	"context"
	"fmt"
	"time"

	"github.com/rekindledb/rekindle"
)

// Cents is an amount of money.
type Cents int64

// BasisPoints is a rate: 10,000 is 1.
type BasisPoints int32

const one BasisPoints = 10_000

// Address is the address of a warehouse, a district or a customer.
type Address struct {
	Street1 string `rekindle:"street_1"`
	Street2 string `rekindle:"street_2"`
	City    string `rekindle:"city"`
	State   string `rekindle:"state"`
	Zip     string `rekindle:"zip"`
}

// Warehouse is a row of WAREHOUSE.
type Warehouse struct {
	ID   int32  `rekindle:"w_id,pk"`
	Name string `rekindle:"w_name"`
	Address
	Tax BasisPoints `rekindle:"w_tax"`
	YTD Cents       `rekindle:"w_ytd"`
}

// District is a row of DISTRICT.
type District struct {
	Warehouse int32  `rekindle:"d_w_id,pk"`
	ID        int32  `rekindle:"d_id,pk"`
	Name      string `rekindle:"d_name"`
	Address
	Tax       BasisPoints `rekindle:"d_tax"`
	YTD       Cents       `rekindle:"d_ytd"`
	NextOrder int32       `rekindle:"d_next_o_id"`
}

// Customer is a row of CUSTOMER. The index "name" serves the selection by
// last name, ordered by first name (2.5.2.2).
type Customer struct {
	Warehouse int32  `rekindle:"c_w_id,pk,index=name:1"`
	District  int32  `rekindle:"c_d_id,pk,index=name:2"`
	ID        int32  `rekindle:"c_id,pk"`
	First     string `rekindle:"c_first,index=name:4"`
	Middle    string `rekindle:"c_middle"`
	Last      string `rekindle:"c_last,index=name:3"`
	Address
	Phone       string      `rekindle:"c_phone"`
	Since       time.Time   `rekindle:"c_since"`
	Credit      string      `rekindle:"c_credit"`
	CreditLimit Cents       `rekindle:"c_credit_lim"`
	Discount    BasisPoints `rekindle:"c_discount"`
	Balance     Cents       `rekindle:"c_balance"`
	YTDPayment  Cents       `rekindle:"c_ytd_payment"`
	Payments    int32       `rekindle:"c_payment_cnt"`
	Deliveries  int32       `rekindle:"c_delivery_cnt"`
	Data        string      `rekindle:"c_data"`
}

// History is a row of HISTORY: one payment of a customer, at a warehouse and
// district that need not be the customer's.
type History struct {
	CustomerWarehouse int32     `rekindle:"h_c_w_id,pk"`
	CustomerDistrict  int32     `rekindle:"h_c_d_id,pk"`
	Customer          int32     `rekindle:"h_c_id,pk"`
	Payment           int32     `rekindle:"h_payment,pk"` // C_PAYMENT_CNT after this payment
	Warehouse         int32     `rekindle:"h_w_id"`
	District          int32     `rekindle:"h_d_id"`
	Date              time.Time `rekindle:"h_date"`
	Amount            Cents     `rekindle:"h_amount"`
	Data              string    `rekindle:"h_data"`
}

// NewOrder is a row of NEW-ORDER: an order that is not delivered yet.
type NewOrder struct {
	Warehouse int32 `rekindle:"no_w_id,pk"`
	District  int32 `rekindle:"no_d_id,pk"`
	Order     int32 `rekindle:"no_o_id,pk"`
}

// Order is a row of ORDER. The index "customer" finds a customer's last order.
type Order struct {
	Warehouse int32                `rekindle:"o_w_id,pk,unique=customer:1"`
	District  int32                `rekindle:"o_d_id,pk,unique=customer:2"`
	ID        int32                `rekindle:"o_id,pk,unique=customer:4"`
	Customer  int32                `rekindle:"o_c_id,unique=customer:3"`
	Entry     time.Time            `rekindle:"o_entry_d"`
	Carrier   rekindle.Null[int32] `rekindle:"o_carrier_id"`
	Lines     int32                `rekindle:"o_ol_cnt"`
	AllLocal  bool                 `rekindle:"o_all_local"`
}

// OrderLine is a row of ORDER-LINE.
type OrderLine struct {
	Warehouse int32                    `rekindle:"ol_w_id,pk"`
	District  int32                    `rekindle:"ol_d_id,pk"`
	Order     int32                    `rekindle:"ol_o_id,pk"`
	Number    int32                    `rekindle:"ol_number,pk"`
	Item      int32                    `rekindle:"ol_i_id"`
	Supply    int32                    `rekindle:"ol_supply_w_id"`
	Delivered rekindle.Null[time.Time] `rekindle:"ol_delivery_d"`
	Quantity  int32                    `rekindle:"ol_quantity"`
	Amount    Cents                    `rekindle:"ol_amount"`
	DistInfo  string                   `rekindle:"ol_dist_info"`
}

// Item is a row of ITEM.
type Item struct {
	ID    int32  `rekindle:"i_id,pk"`
	Image int32  `rekindle:"i_im_id"`
	Name  string `rekindle:"i_name"`
	Price Cents  `rekindle:"i_price"`
	Data  string `rekindle:"i_data"`
}

// districtsOfStock is the number of district texts of a stock row.
const districtsOfStock = 10

// Stock is a row of STOCK.
type Stock struct {
	Warehouse  int32  `rekindle:"s_w_id,pk"`
	Item       int32  `rekindle:"s_i_id,pk"`
	Quantity   int32  `rekindle:"s_quantity"`
	Dist01     string `rekindle:"s_dist_01"`
	Dist02     string `rekindle:"s_dist_02"`
	Dist03     string `rekindle:"s_dist_03"`
	Dist04     string `rekindle:"s_dist_04"`
	Dist05     string `rekindle:"s_dist_05"`
	Dist06     string `rekindle:"s_dist_06"`
	Dist07     string `rekindle:"s_dist_07"`
	Dist08     string `rekindle:"s_dist_08"`
	Dist09     string `rekindle:"s_dist_09"`
	Dist10     string `rekindle:"s_dist_10"`
	YTD        int32  `rekindle:"s_ytd"`
	Orders     int32  `rekindle:"s_order_cnt"`
	RemoteOnes int32  `rekindle:"s_remote_cnt"`
	Data       string `rekindle:"s_data"`
}

// dist returns the texts in the order of the districts.
func (s *Stock) dist() [districtsOfStock]*string {
	return [...]*string{
		&s.Dist01, &s.Dist02, &s.Dist03, &s.Dist04, &s.Dist05,
		&s.Dist06, &s.Dist07, &s.Dist08, &s.Dist09, &s.Dist10,
	}
}

// Tables are the nine tables of one database. Safe for concurrent use.
type Tables struct {
	DB        *rekindle.DB
	Warehouse *rekindle.Table[Warehouse]
	District  *rekindle.Table[District]
	Customer  *rekindle.Table[Customer]
	History   *rekindle.Table[History]
	NewOrder  *rekindle.Table[NewOrder]
	Order     *rekindle.Table[Order]
	OrderLine *rekindle.Table[OrderLine]
	Item      *rekindle.Table[Item]
	Stock     *rekindle.Table[Stock]
}

// OpenTables opens the tables and creates those that are absent.
func OpenTables(ctx context.Context, db *rekindle.DB) (*Tables, error) {
	t := &Tables{DB: db}
	o := opener{ctx: ctx, db: db}
	open(&o, &t.Warehouse, "warehouse")
	open(&o, &t.District, "district")
	open(&o, &t.Customer, "customer")
	open(&o, &t.History, "history")
	open(&o, &t.NewOrder, "new_order")
	open(&o, &t.Order, "order")
	open(&o, &t.OrderLine, "order_line")
	open(&o, &t.Item, "item")
	open(&o, &t.Stock, "stock")
	if o.err != nil {
		return nil, o.err
	}
	return t, nil
}

// opener keeps the first error.
type opener struct {
	ctx context.Context
	db  *rekindle.DB
	err error
}

func open[T any](o *opener, table **rekindle.Table[T], name string) {
	if o.err != nil {
		return
	}
	*table, o.err = rekindle.OpenTable[T](o.ctx, o.db, name)
	if o.err != nil {
		o.err = fmt.Errorf("open tpcc table: %w", o.err)
	}
}

// FirstRead opens the smallest table and reads a row of it, which is the least
// that shows that a database serves.
func FirstRead(ctx context.Context, db *rekindle.DB) error {
	warehouses, err := rekindle.OpenTable[Warehouse](ctx, db, "warehouse")
	if err != nil {
		return err
	}
	return db.View(ctx, func(tx *rekindle.Tx) error {
		return warehouses.Get(tx, &Warehouse{ID: 1})
	})
}
