package tpcc

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestFullScaleIsThatOfTheStandard(t *testing.T) {
	s := Full(1)
	require.Equal(t, 900, s.undelivered())
	require.Equal(t, 2100, s.newestDelivered())
	require.EqualValues(t, 1+10+30_000*3+300_000+9_000+100_000+100_000, s.Rows())
	g := &generator{random: newRandom(1, 0), scale: s}
	require.Equal(t, Cents(30_000_00), g.districtYTD())
	require.Equal(t, Cents(300_000_00), g.warehouse(1).YTD)
}

func TestScaleRejectsWhatCannotBeLoaded(t *testing.T) {
	for _, s := range []Scale{
		{},
		{Warehouses: 0, Districts: 1, Customers: 1, Items: 1},
		{Warehouses: 1, Districts: 11, Customers: 1, Items: 1},
		{Warehouses: 1, Districts: 1, Customers: 0, Items: 1},
		{Warehouses: 1, Districts: 1, Customers: 1, Items: -1},
	} {
		require.Error(t, s.Validate(), "%+v", s)
	}
	for _, name := range []string{"full", "small", "tiny"} {
		s, err := ScaleNamed(name, 2)
		require.NoError(t, err)
		require.NoError(t, s.Validate())
		require.Equal(t, 2, s.Warehouses)
	}
	_, err := ScaleNamed("huge", 1)
	require.ErrorContains(t, err, "huge")
}

func TestLoadFillsEveryTable(t *testing.T) {
	scale := Tiny(2)
	tables := newDatabase(t, scale)
	districts := scale.Warehouses * scale.Districts
	customers := districts * scale.Customers

	require.Len(t, all(t, tables, tables.Warehouse), scale.Warehouses)
	require.Len(t, all(t, tables, tables.District), districts)
	require.Len(t, all(t, tables, tables.Customer), customers)
	require.Len(t, all(t, tables, tables.History), customers)
	require.Len(t, all(t, tables, tables.Order), customers)
	require.Len(t, all(t, tables, tables.NewOrder), districts*scale.undelivered())
	require.Len(t, all(t, tables, tables.Item), scale.Items)
	require.Len(t, all(t, tables, tables.Stock), scale.Warehouses*scale.Items)
	requireConsistent(t, tables)

	require.EqualValues(t, customers, audit(t, tables).Orders())
	rows, _, err := CrossCheck(t.Context(), tables)
	require.NoError(t, err)
	lines := len(all(t, tables, tables.OrderLine))
	want := scale.Warehouses*(1+scale.Items) + districts*(1+scale.undelivered()) + 3*customers + scale.Items + lines
	require.EqualValues(t, want, rows)
	require.InDelta(t, scale.Rows(), rows, float64(scale.Rows())/10)
}

func TestEveryCustomerHasOneInitialOrder(t *testing.T) {
	scale := Tiny(1)
	tables := newDatabase(t, scale)
	var customers []int32
	for _, o := range all(t, tables, tables.Order) {
		require.Equal(t, o.ID <= int32(scale.newestDelivered()), o.Carrier.Valid)
		if o.District == 1 {
			customers = append(customers, o.Customer)
		}
	}
	require.False(t, slices.IsSorted(customers), "the order is a random permutation")
	slices.Sort(customers)
	for i, c := range customers {
		require.EqualValues(t, i+1, c)
	}
}

func TestLoadDependsOnTheSeedAlone(t *testing.T) {
	load := func(seed uint64, workers int) []Stock {
		db, err := rekindle.Open(t.Context(), t.TempDir(), nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close(context.Background())) })
		tables, err := OpenTables(t.Context(), db)
		require.NoError(t, err)
		o := LoadOptions{Scale: Tiny(1), Seed: seed, Now: testDate, Workers: workers}
		require.NoError(t, Load(t.Context(), tables, o))
		return all(t, tables, tables.Stock)
	}
	one := load(1, 1)
	require.Equal(t, one, load(1, 3))
	require.NotEqual(t, one, load(2, 1))
}

func TestLoadReportsProgressToTheEnd(t *testing.T) {
	db, err := rekindle.Open(t.Context(), t.TempDir(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.Background())) })
	tables, err := OpenTables(t.Context(), db)
	require.NoError(t, err)
	var last, total int64
	require.NoError(t, Load(t.Context(), tables, LoadOptions{Scale: Tiny(1), Progress: func(done, all int64) {
		require.GreaterOrEqual(t, done, last)
		last, total = done, all
	}}))
	require.Equal(t, Tiny(1).Rows(), total)
	require.InDelta(t, total, last, float64(total)/10)
}

func TestLoadStopsAtTheFirstError(t *testing.T) {
	tables := newDatabase(t, Tiny(1))
	err := Load(t.Context(), tables, LoadOptions{Scale: Tiny(1)})
	require.ErrorIs(t, err, rekindle.ErrDuplicateKey)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Load(ctx, tables, LoadOptions{Scale: Tiny(1)}), context.Canceled)
	requireConsistent(t, tables)
}

func TestCustomersOfTheGenerator(t *testing.T) {
	g := &generator{random: newRandom(5, 0), scale: Full(1), constants: LoadConstants(5), now: testDate}
	bad, names := 0, map[string]int{}
	for c := 1; c <= g.scale.Customers; c++ {
		row := g.customer(1, 1, c)
		names[row.Last]++
		if row.Credit == badCredit {
			bad++
		}
		require.LessOrEqual(t, row.Discount, BasisPoints(5000))
		require.GreaterOrEqual(t, len(row.Data), 300)
		require.LessOrEqual(t, len(row.Data), 500)
	}
	require.Len(t, names, lastNames, "every name belongs to somebody")
	require.InDelta(t, 300, bad, 80)
	most := 0
	for _, n := range names {
		most = max(most, n)
	}
	require.Greater(t, most, 6, "some names are frequent: the mean is 3")
}

func TestOrdersOfTheGenerator(t *testing.T) {
	g := &generator{random: newRandom(6, 0), scale: Full(1), now: testDate}
	sizes := map[int32]int{}
	for o := 2001; o <= 2200; o++ {
		row, lines := g.order(1, 2, o, 17)
		require.Len(t, lines, int(row.Lines))
		sizes[row.Lines]++
		for _, l := range lines {
			require.Equal(t, o <= 2100, l.Delivered.Valid)
			require.Equal(t, o <= 2100, l.Amount == 0)
			require.Len(t, l.DistInfo, 24)
			require.EqualValues(t, 5, l.Quantity)
		}
	}
	require.Len(t, sizes, maxLines-minLines+1)
}

func TestStockHasATextForEachDistrict(t *testing.T) {
	g := &generator{random: newRandom(7, 0), scale: Full(1)}
	s := g.stock(3, 9)
	require.Equal(t, key{3, 9}, key{s.Warehouse, s.Item})
	texts := map[string]bool{}
	for _, p := range s.dist() {
		require.Len(t, *p, 24)
		texts[*p] = true
	}
	require.Len(t, texts, districtsOfStock)
	require.False(t, strings.Contains(s.Dist01, " "))
}
