package epoch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle/internal/arena"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const blockSize = 136

// newDomain returns a domain that must leave nothing behind in its arena.
func newDomain(tb testing.TB) (*Domain, *arena.Arena) {
	tb.Helper()
	a := arena.New(arena.Config{})
	d := NewDomain(a)
	tb.Cleanup(func() {
		d.Close()
		require.Zero(tb, a.Stats().InUse)
		require.NoError(tb, a.Close())
	})
	return d, a
}

func alloc(tb testing.TB, a *arena.Arena, h *Handle) arena.Ref {
	r, err := a.Alloc(h.Shard(), blockSize)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
