package txn

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func (e *engine) horizon() uint64 {
	var s Snapshots
	e.Snapshots(&s)
	return s.Horizon()
}

// TestPendingSnapshot: one that is being registered holds the horizon where it
// was published last, because it may have read the CTS long ago.
func TestPendingSnapshot(t *testing.T) {
	e := newEngine(t)
	write := func() uint64 {
		return e.commit(func(tx *Tx) error { return e.put(tx, 1, "a", int64(e.Log.Visible())) })
	}
	first := write()
	require.Equal(t, first, e.horizon())

	var second, third uint64
	pin, err := e.PinSnapshot(func() (uint64, error) {
		cts := e.Log.Durable()
		second = write()
		require.Equal(t, first, e.horizon())
		require.Equal(t, first, e.Watermark())
		third = write()
		require.Equal(t, first, e.horizon())
		return cts, nil
	})
	require.NoError(t, err)
	require.Equal(t, third, e.horizon(), "it is registered: known to be at its place")
	require.Equal(t, first, e.Watermark())

	_, err = e.PinSnapshot(func() (uint64, error) {
		write()
		require.Equal(t, third, e.horizon(), "not back to where it was before")
		return 0, context.Canceled
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, e.Log.Durable(), e.horizon())
	pin.Release()
	require.Equal(t, e.Log.Durable(), e.Watermark())
	require.Less(t, second, third)
}

func TestSnapshots(t *testing.T) {
	e := newEngine(t)
	var want []uint64
	var open []*Tx
	for i := range int64(3) {
		want = append(want, e.commit(func(tx *Tx) error { return e.put(tx, i, string(rune('a'+i)), 0) }))
		open = append(open, e.begin(false), e.begin(true))
	}
	var s Snapshots
	e.Snapshots(&s)
	require.Equal(t, want, s.registered)
	for i, cts := range want {
		require.True(t, s.Has(cts))
		at, ok := s.Within(cts, cts+1)
		require.True(t, ok)
		require.Equal(t, cts, at)
		_, ok = s.Within(cts, cts)
		require.False(t, ok)
		require.Equal(t, i > 0, s.anyBelow(cts))
	}
	at, ok := s.Within(0, want[2])
	require.True(t, ok)
	require.Equal(t, want[0], at, "the oldest")
	require.False(t, s.Has(want[2]+1))
	var errs []error
	for _, tx := range open {
		errs = append(errs, tx.Rollback())
	}
	require.NoError(t, errors.Join(errs...))
	e.Snapshots(&s)
	require.Empty(t, s.registered)
}
