package tpcc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/rekindledb/rekindle"
)

// key is a primary key, filled from the left.
type key [4]int32

// CrossCheck checks for every table that its indexes and its rows agree: the
// primary key scan is strictly ascending, every row is found by its primary
// key, and every secondary index delivers exactly the rows of the primary key.
func CrossCheck(ctx context.Context, t *Tables) (Finding, error) {
	f := Finding{Check: "indexes equal scans"}
	err := t.DB.View(ctx, func(tx *rekindle.Tx) error {
		return errors.Join(
			crossCheck(&f, tx, t.Warehouse, func(r *Warehouse) key { return key{r.ID} }),
			crossCheck(&f, tx, t.District, func(r *District) key { return key{r.Warehouse, r.ID} }),
			crossCheck(&f, tx, t.Customer, func(r *Customer) key { return key{r.Warehouse, r.District, r.ID} }, "name"),
			crossCheck(&f, tx, t.History, func(r *History) key {
				return key{r.CustomerWarehouse, r.CustomerDistrict, r.Customer, r.Payment}
			}),
			crossCheck(&f, tx, t.NewOrder, func(r *NewOrder) key { return key{r.Warehouse, r.District, r.Order} }),
			crossCheck(&f, tx, t.Order, func(r *Order) key { return key{r.Warehouse, r.District, r.ID} }, "customer"),
			crossCheck(&f, tx, t.OrderLine, func(r *OrderLine) key { return key{r.Warehouse, r.District, r.Order, r.Number} }),
			crossCheck(&f, tx, t.Item, func(r *Item) key { return key{r.ID} }),
			crossCheck(&f, tx, t.Stock, func(r *Stock) key { return key{r.Warehouse, r.Item} }),
		)
	})
	if err != nil {
		return f, fmt.Errorf("cross-check tpcc: %w", err)
	}
	return f, nil
}

func crossCheck[T any](f *Finding, tx *rekindle.Tx, t *rekindle.Table[T], keyOf func(*T) key, secondary ...string) error {
	keys, err := checkPrimary(f, tx, t, keyOf)
	if err != nil {
		return err
	}
	for _, index := range secondary {
		if err := checkSecondary(f, tx, t, keyOf, index, keys); err != nil {
			return err
		}
	}
	return nil
}

// checkPrimary returns the keys in the order of the scan.
func checkPrimary[T any](f *Finding, tx *rekindle.Tx, t *rekindle.Table[T], keyOf func(*T) key) ([]key, error) {
	var keys []key
	for row, err := range t.All(tx) {
		if err != nil {
			return nil, err
		}
		k := keyOf(&row)
		if len(keys) > 0 {
			f.Expect(compareKeys(keys[len(keys)-1], k) < 0, "%T: %v comes after %v", row, k, keys[len(keys)-1])
		}
		keys = append(keys, k)
		if err := checkGet(f, tx, t, &row, k); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// checkGet reads the row again by its key fields.
func checkGet[T any](f *Finding, tx *rekindle.Tx, t *rekindle.Table[T], row *T, k key) error {
	got := *row
	err := t.Get(tx, &got)
	if errors.Is(err, rekindle.ErrNotFound) {
		f.Expect(false, "%T: a scan delivers %v, the key does not find it", got, k)
		return nil
	}
	if err != nil {
		return err
	}
	f.Expect(reflect.DeepEqual(got, *row), "%T: %v is another row by scan than by key", got, k)
	return nil
}

func checkSecondary[T any](f *Finding, tx *rekindle.Tx, t *rekindle.Table[T], keyOf func(*T) key, index string, want []key) error {
	got := make([]key, 0, len(want))
	for row, err := range t.Scan(tx, rekindle.Query{Index: index}) {
		if err != nil {
			return err
		}
		k := keyOf(&row)
		got = append(got, k)
		if err := checkGet(f, tx, t, &row, k); err != nil {
			return err
		}
	}
	slices.SortFunc(got, compareKeys)
	var row T
	f.Expect(slices.Equal(got, want), "%T: index %s delivers %d rows, the primary key %d, or other ones",
		row, index, len(got), len(want))
	return nil
}

func compareKeys(a, b key) int { return slices.Compare(a[:], b[:]) }
