package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EachDatabase calls fn with each strategy and number of rows, and with the name of
// an empty directory in dir, which it makes and removes.
func EachDatabase(dir string, strategies []string, rows []int64, fn func(dir, strategy string, rows int64) error) error {
	for _, strategy := range strategies {
		for _, n := range rows {
			name := filepath.Join(dir, fmt.Sprintf("%s-%d", strategy, n))
			if err := inDirectory(name, func() error { return fn(name, strategy, n) }); err != nil {
				return fmt.Errorf("%s with %d rows: %w", strategy, n, err)
			}
		}
	}
	return nil
}

// inDirectory makes a directory for fn, and leaves alone one that is there.
func inDirectory(name string, fn func() error) (err error) {
	if err := os.Mkdir(name, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(name)) }()
	return fn()
}

// InRange returns an error if a setting is not in [lo, hi].
func InRange(what string, n, lo, hi int64) error {
	if n < lo || n > hi {
		return fmt.Errorf("%s must be %d to %d, not %d", what, lo, hi, n)
	}
	return nil
}
