package tpcc

import (
	"errors"
	"fmt"
	"iter"
)

// errNoRow says that a scan that should deliver a row was empty.
var errNoRow = errors.New("no such row")

// first returns the first row of a scan, errNoRow if there is none.
func first[T any](rows iter.Seq2[T, error]) (T, error) {
	for row, err := range rows {
		return row, err
	}
	var none T
	return none, errNoRow
}

func collect[T any](rows iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

func (s *selection) notFound() error {
	return fmt.Errorf("%w: customer %s of warehouse %d, district %d", errNoRow, s.last, s.warehouse, s.district)
}
