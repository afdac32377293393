package tpcc

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMixIsThatOfTheDeck(t *testing.T) {
	m := newTerminal(nil, Tiny(1), 0)
	counts := map[Kind]int{}
	const decks = 100
	for range 23 * decks {
		counts[m.draw()]++
	}
	require.Equal(t, map[Kind]int{
		KindNewOrder: 10 * decks, KindPayment: 10 * decks,
		KindOrderStatus: decks, KindDelivery: decks, KindStockLevel: decks,
	}, counts)
}

func TestInputsFollowTheStandardsShares(t *testing.T) {
	scale := Full(4)
	m := newTerminal(nil, scale, 6)
	require.Equal(t, key{3, 2}, key{m.warehouse, m.district})
	const draws = 20_000
	var unused, remoteLines, lines, remotePayments, byName int
	for range draws {
		o := m.newOrder()
		lines += len(o.lines)
		for _, l := range o.lines {
			require.LessOrEqual(t, l.item, int32(scale.Items)+1)
			if l.item > int32(scale.Items) {
				unused++
			}
			if l.supply != m.warehouse {
				remoteLines++
			}
		}
		p := m.payment()
		require.Equal(t, m.warehouse, p.warehouse)
		if p.customer.warehouse != m.warehouse {
			remotePayments++
		}
		if p.customer.last != "" {
			byName++
		}
	}
	require.InDelta(t, draws*0.01, unused, draws*0.004)
	require.InDelta(t, float64(lines)*0.01, remoteLines, float64(lines)*0.002)
	require.InDelta(t, draws*10, lines, draws*0.2)
	require.InDelta(t, draws*0.15, remotePayments, draws*0.02)
	require.InDelta(t, draws*0.60, byName, draws*0.02)
}

func TestOtherWarehouse(t *testing.T) {
	require.EqualValues(t, 1, newTerminal(nil, Tiny(1), 0).otherWarehouse())
	m := newTerminal(nil, Tiny(4), 1)
	seen := map[int32]bool{}
	for range 200 {
		seen[m.otherWarehouse()] = true
	}
	require.Equal(t, map[int32]bool{1: true, 3: true, 4: true}, seen)
}

func TestTerminalsLeaveAConsistentDatabase(t *testing.T) {
	scale := Tiny(2)
	tables := newDatabase(t, scale)
	const terminals, each = 4, 60
	receipts, rolledBack := make([][]Receipt, terminals), make([]int, terminals)
	var group sync.WaitGroup
	for i := range terminals {
		group.Go(func() {
			m := newTerminal(tables, scale, i)
			for range each {
				result, err := m.Next(t.Context())
				if !assertNoError(t, err) {
					return
				}
				receipts[i] = append(receipts[i], result.Receipts...)
				if result.RolledBack {
					rolledBack[i]++
				}
			}
		})
	}
	group.Wait()
	requireConsistent(t, tables)
	a := audit(t, tables)
	placed := int64(0)
	for _, r := range receipts {
		f := a.Receipts(r)
		require.True(t, f.OK(), "%v", f.Details)
		require.EqualValues(t, len(r), f.Checked)
		for _, one := range r {
			if one.Kind == KindNewOrder {
				placed++
			}
		}
	}
	require.EqualValues(t, scale.Warehouses*scale.Districts*scale.Customers, a.Orders()-placed)
}

func assertNoError(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func TestTerminalStopsWithItsContext(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newTerminal(tables, Tiny(1), 0).Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestKindNames(t *testing.T) {
	require.Equal(t, "new-order", KindNewOrder.String())
	require.Equal(t, "stock-level", KindStockLevel.String())
	require.Equal(t, "kind 9", Kind(9).String())
}
