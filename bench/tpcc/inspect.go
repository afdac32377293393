package tpcc

import (
	"context"
	"errors"
	"sync"

	"github.com/rekindledb/rekindle"
)

// Inspection is the whole content of a database, looked at from every side.
type Inspection struct {
	Audit    *Audit
	Rows     int64     // in all tables
	Findings []Finding // the consistency conditions, keys against scans, indexes against the array
}

// Inspect reads the database three times over, side by side. A violation is a
// finding and no error.
func Inspect(ctx context.Context, t *Tables) (Inspection, error) {
	var in Inspection
	var keys, array Finding
	err := together(
		func() (err error) { in.Audit, err = ReadAudit(ctx, t); return err },
		func() (err error) { in.Rows, keys, err = CrossCheck(ctx, t); return err },
		func() (err error) { array, err = checkArray(ctx, t.DB); return err },
	)
	if err != nil {
		return in, err
	}
	in.Findings = append(in.Audit.Conditions(), keys, array)
	return in, nil
}

// together runs the functions side by side.
func together(fns ...func() error) error {
	errs := make([]error, len(fns))
	var group sync.WaitGroup
	for i, fn := range fns {
		group.Go(func() { errs[i] = fn() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// checkArray is the engine's own comparison of its indexes with the rows that
// are there, which no scan by an index can see.
func checkArray(ctx context.Context, db *rekindle.DB) (Finding, error) {
	f := Finding{Check: "indexes equal the indirection array"}
	_, err := db.CrossCheck(ctx)
	if err != nil && !errors.Is(err, rekindle.ErrCorrupt) {
		return f, err
	}
	f.Expect(err == nil, "%v", err)
	return f, nil
}
