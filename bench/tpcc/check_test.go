package tpcc

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

// violated returns the numbers of the conditions that do not hold for what the
// transaction sees.
func violated(t *testing.T, tx *rekindle.Tx, tables *Tables) []string {
	t.Helper()
	a, err := readAudit(tx, tables)
	require.NoError(t, err)
	var numbers []string
	for _, f := range a.Conditions() {
		if !f.OK() {
			require.NotEmpty(t, f.Details, f.Check)
			number, _, _ := strings.Cut(strings.TrimPrefix(f.Check, "condition "), ":")
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// change plants a change in one row.
func change[T any](t *testing.T, tx *rekindle.Tx, table *rekindle.Table[T], row T, fn func(*T)) {
	t.Helper()
	require.NoError(t, table.Get(tx, &row))
	fn(&row)
	require.NoError(t, table.Update(tx, &row))
}

func TestConditionsFindPlantedViolations(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	last := int32(scale.Customers)
	district := District{Warehouse: 1, ID: 2}
	oldOrder := Order{Warehouse: 1, District: 2, ID: 1}
	newOrder := Order{Warehouse: 1, District: 2, ID: last}
	for _, c := range []struct {
		name  string
		plant func(tx *rekindle.Tx, s *Tables)
		want  []string
	}{
		{"warehouse total", func(tx *rekindle.Tx, s *Tables) {
			change(t, tx, s.Warehouse, Warehouse{ID: 1}, func(r *Warehouse) { r.YTD++ })
		}, []string{"1", "8"}},
		{"district total", func(tx *rekindle.Tx, s *Tables) {
			change(t, tx, s.District, district, func(r *District) { r.YTD++ })
		}, []string{"1", "9"}},
		{"order number given out, order lost", func(tx *rekindle.Tx, s *Tables) {
			change(t, tx, s.District, district, func(r *District) { r.NextOrder++ })
		}, []string{"2", "11"}},
		{"last new-order lost", func(tx *rekindle.Tx, s *Tables) {
			require.NoError(t, s.NewOrder.Delete(tx, &NewOrder{Warehouse: 1, District: 2, Order: last}))
		}, []string{"2", "5"}},
		{"new-order in the middle lost", func(tx *rekindle.Tx, s *Tables) {
			require.NoError(t, s.NewOrder.Delete(tx, &NewOrder{Warehouse: 1, District: 2, Order: last - 1}))
		}, []string{"3", "5"}},
		{"order line lost", func(tx *rekindle.Tx, s *Tables) {
			require.NoError(t, s.OrderLine.Delete(tx, &OrderLine{Warehouse: 1, District: 2, Order: last, Number: 1}))
		}, []string{"4", "6"}},
		{"delivery half done", func(tx *rekindle.Tx, s *Tables) {
			change(t, tx, s.Order, newOrder, func(r *Order) { r.Carrier = rekindle.Null[int32]{V: 1, Valid: true} })
		}, []string{"5", "7"}},
		{"line of a delivered order not dated", func(tx *rekindle.Tx, s *Tables) {
			line := OrderLine{Warehouse: 1, District: 2, Order: 1, Number: 1}
			change(t, tx, s.OrderLine, line, func(r *OrderLine) { r.Delivered.Valid = false })
		}, []string{"7"}},
		{"balance", func(tx *rekindle.Tx, s *Tables) {
			customer := Customer{Warehouse: 1, District: 2, ID: 1}
			change(t, tx, s.Customer, customer, func(r *Customer) { r.Balance++ })
		}, []string{"10", "12"}},
		{"payment lost", func(tx *rekindle.Tx, s *Tables) {
			history := History{CustomerWarehouse: 1, CustomerDistrict: 2, Customer: 1, Payment: 1}
			require.NoError(t, s.History.Delete(tx, &history))
		}, []string{"8", "9", "10"}},
		{"old order lost", func(tx *rekindle.Tx, s *Tables) {
			require.NoError(t, s.Order.Delete(tx, &oldOrder))
		}, []string{"4", "5", "6", "7", "11"}},
		{"customer lost", func(tx *rekindle.Tx, s *Tables) {
			require.NoError(t, s.Customer.Delete(tx, &Customer{Warehouse: 1, District: 2, ID: 1}))
		}, []string{"10"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx, err := tables.DB.Begin(t.Context(), true)
			require.NoError(t, err)
			require.Empty(t, violated(t, tx, tables))
			c.plant(tx, tables)
			require.Equal(t, c.want, violated(t, tx, tables))
			require.NoError(t, tx.Rollback())
		})
	}
	requireConsistent(t, tables)
}

func TestReceiptsFindWhatIsLost(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	m := newTerminal(tables, scale, 0)
	var receipts []Receipt
	for _, kind := range []Kind{KindNewOrder, KindPayment, KindDelivery, KindOrderStatus, KindStockLevel} {
		result, err := m.run(t.Context(), kind)
		require.NoError(t, err)
		require.False(t, result.RolledBack, "seed %d", testSeed)
		receipts = append(receipts, result.Receipts...)
	}
	a := audit(t, tables)
	f := a.Receipts(receipts)
	require.True(t, f.OK(), "%v", f.Details)
	require.EqualValues(t, 2+scale.Districts, f.Checked)

	for i, r := range receipts {
		for _, spoil := range []func(*Receipt){
			func(r *Receipt) { r.ID += 1000 },
			func(r *Receipt) { r.Number += 20 },
			func(r *Receipt) { r.Warehouse++ },
		} {
			wrong := slices.Clone(receipts)
			spoil(&wrong[i])
			f := a.Receipts(wrong)
			require.EqualValues(t, 1, f.Violations, "%v", r)
			require.Len(t, f.Details, 1)
		}
	}
	wrong := slices.Clone(receipts)
	wrong[0].Amount++
	f = a.Receipts(wrong)
	require.False(t, f.OK())
}

func TestReceiptOfAPartialOrderIsFound(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	m := newTerminal(tables, Tiny(1), 0)
	result, err := m.run(t.Context(), KindNewOrder)
	require.NoError(t, err)
	r := result.Receipts[0]
	update(t, tables, func(tx *rekindle.Tx) {
		line := OrderLine{Warehouse: r.Warehouse, District: r.District, Order: r.ID, Number: r.Number}
		require.NoError(t, tables.OrderLine.Delete(tx, &line))
	})
	f := audit(t, tables).Receipts(result.Receipts)
	require.EqualValues(t, 1, f.Violations)
}

func TestCrossCheckFindsDisagreement(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	ofItem := func(r *Item) key { return key{r.ID} }
	for _, c := range []struct {
		name  string
		check func(c *crossChecker) error
	}{
		{"order of the scan", func(c *crossChecker) error {
			return crossCheck(c, tables.Item, func(r *Item) key { return key{-r.ID} })
		}},
		{"row without a key entry", func(c *crossChecker) error {
			return checkGet(c, tables.Item, &Item{ID: 100_000}, key{100_000})
		}},
		{"another row by key", func(c *crossChecker) error {
			return checkGet(c, tables.Item, &Item{ID: 1}, key{1})
		}},
		{"secondary index with other rows", func(c *crossChecker) error {
			keys, err := checkPrimary(c, tables.Item, ofItem)
			if err != nil {
				return err
			}
			return checkSecondary(c, tables.Item, ofItem, "", keys[1:])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f Finding
			view(t, tables, func(tx *rekindle.Tx) { require.NoError(t, c.check(&crossChecker{f: &f, tx: tx})) })
			require.False(t, f.OK())
			require.NotEmpty(t, f.Details)
		})
	}
}

func TestFindingDescribesTheFirstFew(t *testing.T) {
	var f Finding
	for i := range 20 {
		f.Expect(i%2 == 0, "number %d", i)
	}
	require.EqualValues(t, 20, f.Checked)
	require.EqualValues(t, 10, f.Violations)
	require.Len(t, f.Details, maxDetails)
	require.Equal(t, "number 1", f.Details[0])
}
