package logstream

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine outlives its log or scan.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
