package epoch

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/invariants"
)

func TestPinHoldsBlocksBack(t *testing.T) {
	d, a := newDomain(t)
	reader, writer := d.Register(), d.Register()
	for _, when := range []string{"pinned before", "pinned in the epoch after"} {
		t.Run(when, func(t *testing.T) {
			if when == "pinned in the epoch after" {
				d.advance()
			}
			reader.Pin()
			writer.Retire(alloc(t, a, writer), blockSize)
			for range 5 {
				require.Zero(t, d.Reclaim())
			}
			require.NotZero(t, a.Stats().InUse)
			reader.Unpin()
			require.Equal(t, 1, d.Reclaim())
			require.Zero(t, a.Stats().InUse)
		})
	}
}

func TestLaterPinsHoldNothingBack(t *testing.T) {
	d, a := newDomain(t)
	reader, writer := d.Register(), d.Register()
	writer.Retire(alloc(t, a, writer), blockSize)
	d.Reclaim()
	for range 4 { // pins overlap in time, but each is newer than the last
		reader.Pin()
		d.Reclaim()
		reader.Unpin()
		reader, writer = writer, reader
	}
	require.Zero(t, a.Stats().InUse)
}

func TestIdleHandlesKeepNothing(t *testing.T) {
	d, a := newDomain(t)
	idle, retiring := d.Register(), d.Register()
	for range 1000 {
		retiring.Retire(alloc(t, a, retiring), blockSize)
	}
	idle.Pin()
	idle.Unpin()
	d.Reclaim()
	require.Zero(t, d.Stats().Retired)
	require.Zero(t, a.Stats().InUse)
}

func TestOneHandleReclaimsItsOwnBlocks(t *testing.T) {
	d, a := newDomain(t)
	h := d.Register()
	most := 0
	for range 50_000 {
		h.Pin()
		h.Retire(alloc(t, a, h), blockSize)
		h.Unpin()
		most = max(most, d.Stats().Retired)
	}
	require.LessOrEqual(t, most, 4*minTry)
	require.LessOrEqual(t, len(h.ring.slots), 8*minTry)
}

func TestBacklogIsWorkedOff(t *testing.T) {
	const backlog = 10_000
	d, a := newDomain(t)
	reader, h := d.Register(), d.Register()
	reader.Pin()
	for range backlog {
		h.Retire(alloc(t, a, h), blockSize)
	}
	require.Equal(t, backlog, d.Stats().Retired)
	reader.Unpin()
	for range backlog / 2 {
		h.Retire(alloc(t, a, h), blockSize)
	}
	require.LessOrEqual(t, d.Stats().Retired, 4*minTry)
}

func TestDefer(t *testing.T) {
	d, a := newDomain(t)
	reader := d.Register()
	var ran []string
	reader.Pin()
	d.Defer(func() {
		ran = append(ran, "first")
		d.Defer(func() { ran = append(ran, "nested") })
		d.Reclaim()
		reader.Retire(alloc(t, a, reader), blockSize)
	})
	d.Defer(func() { ran = append(ran, "second") })
	d.Reclaim()
	d.Reclaim()
	require.Empty(t, ran)
	require.Equal(t, 2, d.Stats().Deferred)
	reader.Unpin()
	d.Reclaim()
	require.Subset(t, ran, []string{"first", "second"})
	d.Close()
	require.ElementsMatch(t, []string{"first", "second", "nested"}, ran)
	require.Zero(t, a.Stats().InUse)
}

func TestCloseRunsAndFreesAll(t *testing.T) {
	d, a := newDomain(t)
	h := d.Register()
	ran := 0
	for range 100 {
		h.Retire(alloc(t, a, h), blockSize)
		d.Defer(func() { ran++ })
	}
	d.Close()
	require.Equal(t, 100, ran)
	require.Zero(t, a.Stats().InUse)
	d.Close()
}

func TestBarrierWithoutPins(t *testing.T) {
	d, _ := newDomain(t)
	d.Register()
	require.NoError(t, d.Barrier(t.Context()))
}

func TestBarrierWaits(t *testing.T) {
	d, _ := newDomain(t)
	h := d.Register()
	for _, hold := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		h.Pin()
		done := make(chan error, 1)
		go func() { done <- d.Barrier(t.Context()) }()
		select {
		case <-done:
			t.Error("the barrier did not wait for a pin")
		case <-time.After(hold):
		}
		h.Unpin()
		require.NoError(t, <-done)
	}
}

func TestBarrierIgnoresLaterPins(t *testing.T) {
	d, _ := newDomain(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		handles := []*Handle{d.Register(), d.Register()}
		handles[0].Pin()
		for i := 1; ctx.Err() == nil; i++ { // at any time one of them is pinned
			handles[i%2].Pin()
			handles[(i+1)%2].Unpin()
			if i%100 == 0 {
				time.Sleep(time.Microsecond)
			}
		}
		for _, h := range handles {
			if h.Pinned() {
				h.Unpin()
			}
		}
	}()
	for range 20 {
		require.NoError(t, d.Barrier(t.Context()))
	}
	cancel()
	<-done
}

func TestBarrierEndsWithItsContext(t *testing.T) {
	d, _ := newDomain(t)
	h := d.Register()
	h.Pin()
	defer h.Unpin()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, d.Barrier(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, d.Barrier(ctx), context.DeadlineExceeded)
}

func TestShardsDiffer(t *testing.T) {
	d, _ := newDomain(t)
	seen := map[uint32]bool{}
	for range 100 {
		seen[d.Register().Shard()] = true
	}
	require.Len(t, seen, 100)
	require.Equal(t, 100, d.Stats().Handles)
}

func TestMisuseIsReported(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs the invariants tag")
	}
	d, a := newDomain(t)
	h := d.Register()
	require.Panics(t, h.Unpin, "unpin without pin")
	require.Panics(t, func() { h.Retire(0, 8) }, "nil")
	h.Pin()
	require.Panics(t, h.Pin, "nested pin")
	require.Panics(t, d.Close, "close with a pin")
	h.Unpin()
	require.Zero(t, a.Stats().InUse)
}
