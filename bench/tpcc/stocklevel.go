package tpcc

import (
	"github.com/rekindledb/rekindle"
)

// recentOrders is how far back stock-level looks (2.8.2.2).
const recentOrders = 20

// stockLevel is the input of the stock-level transaction (2.8.1).
type stockLevel struct{ warehouse, district, threshold int32 }

func (m *Terminal) stockLevel() stockLevel {
	return stockLevel{warehouse: m.warehouse, district: m.district, threshold: m.int32(10, 20)}
}

// run counts the items of the district's last orders that are low in stock.
func (in *stockLevel) run(tx *rekindle.Tx, t *Tables) (int, error) {
	district := District{Warehouse: in.warehouse, ID: in.district}
	if err := t.District.Get(tx, &district); err != nil {
		return 0, err
	}
	items, err := in.recentItems(tx, t, district.NextOrder)
	if err != nil {
		return 0, err
	}
	low := 0
	for i := range items {
		stock := Stock{Warehouse: in.warehouse, Item: i}
		if err := t.Stock.Get(tx, &stock); err != nil {
			return 0, err
		}
		if stock.Quantity < in.threshold {
			low++
		}
	}
	return low, nil
}

func (in *stockLevel) recentItems(tx *rekindle.Tx, t *Tables, next int32) (map[int32]struct{}, error) {
	items := make(map[int32]struct{}, recentOrders*maxLines)
	for l, err := range t.OrderLine.Scan(tx, rekindle.Query{
		Prefix: rekindle.Key(in.warehouse, in.district),
		From:   rekindle.Key(next - recentOrders),
		To:     rekindle.Key(next),
	}) {
		if err != nil {
			return nil, err
		}
		items[l.Item] = struct{}{}
	}
	return items, nil
}
