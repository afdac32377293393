package tpcc

import "fmt"

// Limits of the last names (4.3.2.3) and of the order lines of one order.
const (
	lastNames = 1000
	minLines  = 5
	maxLines  = 15
)

// Scale is the size of the initial database. All counts are at least 1.
type Scale struct {
	Warehouses int `json:"warehouses"`
	Districts  int `json:"districts"` // of a warehouse, at most 10: a stock row has a text for each
	Customers  int `json:"customers"` // of a district, with one initial order each
	Items      int `json:"items"`     // and so many stock rows of a warehouse
}

// Full is the scale of the standard (1.2.1).
func Full(warehouses int) Scale {
	return Scale{Warehouses: warehouses, Districts: 10, Customers: 3000, Items: 100_000}
}

// Small is about a tenth of Full, for a quick look.
func Small(warehouses int) Scale {
	return Scale{Warehouses: warehouses, Districts: 10, Customers: 300, Items: 10_000}
}

// Tiny is for tests.
func Tiny(warehouses int) Scale {
	return Scale{Warehouses: warehouses, Districts: 3, Customers: 30, Items: 200}
}

// ScaleNamed returns Full, Small or Tiny by its lower-case name.
func ScaleNamed(name string, warehouses int) (Scale, error) {
	switch name {
	case "full":
		return Full(warehouses), nil
	case "small":
		return Small(warehouses), nil
	case "tiny":
		return Tiny(warehouses), nil
	}
	return Scale{}, fmt.Errorf("unknown scale %q: want full, small or tiny", name)
}

// Validate checks the ranges.
func (s Scale) Validate() error {
	for _, f := range []struct {
		name     string
		n, limit int
	}{
		{"warehouses", s.Warehouses, 100_000},
		{"districts", s.Districts, districtsOfStock},
		{"customers", s.Customers, 1_000_000},
		{"items", s.Items, 100_000_000},
	} {
		if f.n < 1 || f.n > f.limit {
			return fmt.Errorf("tpcc scale: %s must be between 1 and %d, not %d", f.name, f.limit, f.n)
		}
	}
	return nil
}

// names is how many different last names a district has.
func (s Scale) names() int { return min(lastNames, s.Customers) }

// undelivered is how many of a district's initial orders, the newest ones,
// are not delivered: 900 of 3,000 in Full (4.3.3.1).
func (s Scale) undelivered() int { return s.Customers * 3 / 10 }

// newestDelivered is the last initial order of a district that is delivered.
func (s Scale) newestDelivered() int { return s.Customers - s.undelivered() }

// Rows is the number of initial rows; that of order lines, 5 to 15 an order,
// is taken at its mean.
func (s Scale) Rows() int64 {
	customers := int64(s.Warehouses) * int64(s.Districts) * int64(s.Customers)
	const history, order, meanLines = 1, 1, (minLines + maxLines) / 2
	rows := int64(s.Items) * int64(1+s.Warehouses)
	rows += int64(s.Warehouses) * int64(1+s.Districts)
	rows += customers * (1 + history + order + meanLines)
	return rows + int64(s.Warehouses)*int64(s.Districts)*int64(s.undelivered())
}
