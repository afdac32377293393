package tpcc

import (
	"github.com/rekindledb/rekindle"
)

// selection names a customer: by last name unless that is empty, else by id.
type selection struct {
	warehouse, district, id int32
	last                    string
}

// selection takes the last name in 60 of 100 cases (2.5.1.2, 2.6.1.2).
func (m *Terminal) selection(warehouse, district int32) selection {
	s := selection{warehouse: warehouse, district: district}
	if m.percent(60) {
		s.last = lastName(m.nuRand(nuLast, m.constants.Last, 0, m.scale.names()-1))
	} else {
		s.id = m.customerID()
	}
	return s
}

func (s *selection) find(tx *rekindle.Tx, t *Tables) (Customer, error) {
	if s.last != "" {
		return s.findByName(tx, t)
	}
	row := Customer{Warehouse: s.warehouse, District: s.district, ID: s.id}
	return row, t.Customer.Get(tx, &row)
}

// findByName returns the customer at position n/2, rounded up, of the n
// namesakes in the order of their first names (2.5.2.2).
func (s *selection) findByName(tx *rekindle.Tx, t *Tables) (Customer, error) {
	namesakes, err := collect(t.Customer.Scan(tx, rekindle.Query{
		Index:  "name",
		Prefix: rekindle.Key(s.warehouse, s.district, s.last),
	}))
	if err != nil {
		return Customer{}, err
	}
	if len(namesakes) == 0 {
		return Customer{}, s.notFound()
	}
	return namesakes[(len(namesakes)+1)/2-1], nil
}
