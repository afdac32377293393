//go:build !linux

package restart

import "errors"

func dropMachine() error { return errors.ErrUnsupported }
