package tpcc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rekindledb/rekindle"
)

// key is a primary key, filled from the left.
type key [4]int32

// CrossCheck checks for every table that its indexes and its rows agree: the
// primary key scan is strictly ascending, every row is found by its primary
// key, and every secondary index delivers exactly the rows of the primary key.
// It returns the number of rows, too.
func CrossCheck(ctx context.Context, t *Tables) (rows int64, f Finding, err error) {
	f.Check = "keys find the rows of scans"
	c := crossChecker{f: &f}
	err = t.DB.View(ctx, func(tx *rekindle.Tx) error {
		c.tx = tx
		return errors.Join(
			crossCheck(&c, t.Warehouse, func(r *Warehouse) key { return key{r.ID} }),
			crossCheck(&c, t.District, func(r *District) key { return key{r.Warehouse, r.ID} }),
			crossCheck(&c, t.Customer, func(r *Customer) key { return key{r.Warehouse, r.District, r.ID} }, "name"),
			crossCheck(&c, t.History, func(r *History) key {
				return key{r.CustomerWarehouse, r.CustomerDistrict, r.Customer, r.Payment}
			}),
			crossCheck(&c, t.NewOrder, func(r *NewOrder) key { return key{r.Warehouse, r.District, r.Order} }),
			crossCheck(&c, t.Order, func(r *Order) key { return key{r.Warehouse, r.District, r.ID} }, "customer"),
			crossCheck(&c, t.OrderLine, func(r *OrderLine) key { return key{r.Warehouse, r.District, r.Order, r.Number} }),
			crossCheck(&c, t.Item, func(r *Item) key { return key{r.ID} }),
			crossCheck(&c, t.Stock, func(r *Stock) key { return key{r.Warehouse, r.Item} }),
		)
	})
	if err != nil {
		return 0, f, fmt.Errorf("cross-check tpcc: %w", err)
	}
	return c.rows, f, nil
}

// crossChecker is a cross-check under way.
type crossChecker struct {
	f    *Finding
	tx   *rekindle.Tx
	rows int64
}

func crossCheck[T comparable](c *crossChecker, t *rekindle.Table[T], keyOf func(*T) key, secondary ...string) error {
	keys, err := checkPrimary(c, t, keyOf)
	if err != nil {
		return err
	}
	c.rows += int64(len(keys))
	for _, index := range secondary {
		if err := checkSecondary(c, t, keyOf, index, keys); err != nil {
			return err
		}
	}
	return nil
}

// checkPrimary returns the keys in the order of the scan.
func checkPrimary[T comparable](c *crossChecker, t *rekindle.Table[T], keyOf func(*T) key) ([]key, error) {
	var keys []key
	for row, err := range t.All(c.tx) {
		if err != nil {
			return nil, err
		}
		k := keyOf(&row)
		if len(keys) > 0 && compareKeys(keys[len(keys)-1], k) >= 0 {
			c.f.Expect(false, "%s: %v comes after %v", t.Name(), k, keys[len(keys)-1])
		}
		keys = append(keys, k)
		if err := checkGet(c, t, &row, k); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// checkGet reads the row again by its key fields.
func checkGet[T comparable](c *crossChecker, t *rekindle.Table[T], row *T, k key) error {
	got := *row
	err := t.Get(c.tx, &got)
	switch {
	case errors.Is(err, rekindle.ErrNotFound):
		c.f.Expect(false, "%s: a scan delivers %v, the key does not find it", t.Name(), k)
		return nil
	case err != nil:
		return err
	case got != *row:
		c.f.Expect(false, "%s: %v is another row by scan than by key", t.Name(), k)
	default:
		c.f.Checked++ // without making the text for each row
	}
	return nil
}

func checkSecondary[T comparable](c *crossChecker, t *rekindle.Table[T], keyOf func(*T) key, index string, want []key) error {
	got := make([]key, 0, len(want))
	for row, err := range t.Scan(c.tx, rekindle.Query{Index: index}) {
		if err != nil {
			return err
		}
		k := keyOf(&row)
		got = append(got, k)
		if err := checkGet(c, t, &row, k); err != nil {
			return err
		}
	}
	slices.SortFunc(got, compareKeys)
	c.f.Expect(slices.Equal(got, want), "%s: index %s delivers %d rows, the primary key %d, or other ones",
		t.Name(), index, len(got), len(want))
	return nil
}

func compareKeys(a, b key) int { return slices.Compare(a[:], b[:]) }
