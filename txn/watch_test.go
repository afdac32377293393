package txn

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/fault"
)

const limit = time.Minute

// TestWatchEndsIdleTransactions: by the age since they were first seen, and never
// in the middle of a call.
func TestWatchEndsIdleTransactions(t *testing.T) {
	e := newEngine(t)
	cts := e.commit(func(tx *Tx) error { return e.put(tx, 1, "a", 0) })
	now := time.Now()
	old := e.begin(true)
	require.NoError(t, e.put(old, 1, "b", 0))
	pin, err := e.PinSnapshot(func() (uint64, error) { return e.Log.Durable(), nil })
	require.NoError(t, err)
	require.Zero(t, e.Watch(now, limit))
	young := e.begin(true)
	require.Zero(t, e.Watch(now.Add(limit), limit), "it is not above the limit, and the other one was not seen before")

	call, err := old.Enter(e.table)
	require.NoError(t, err)
	require.Zero(t, e.Watch(now.Add(2*limit-1), limit), "inside a call")
	call.Leave()
	require.Zero(t, e.Watch(now.Add(24*time.Hour), 0), "without a limit")
	require.Equal(t, 1, e.Watch(now.Add(2*limit-1), limit))
	require.EqualValues(t, 1, e.Counters().Expired)
	require.NoError(t, e.put(young, 1, "c", 0), "the row is free")
	require.Equal(t, 1, e.Watch(now.Add(3*limit), limit))

	oldest, age, ok := e.OldestSnapshot(now.Add(4 * limit))
	require.True(t, ok, "a pin is not ended")
	require.Equal(t, cts, oldest)
	require.Equal(t, 4*limit, age)
	pin.Release()
	_, _, ok = e.OldestSnapshot(now)
	require.False(t, ok)
	require.Equal(t, []uint64{cts}, e.chain(1))
}

// TestExpiredSession: it is nobody else's until its owner has been told.
func TestExpiredSession(t *testing.T) {
	for name, end := range map[string]func(tx *Tx) error{
		"rollback": (*Tx).Rollback,
		"commit":   func(tx *Tx) error { return tx.Commit(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			tx := e.begin(true)
			it := tx.Scan(e.table, byID, index.Range{}, 0)
			now := time.Now()
			e.Watch(now, limit)
			require.Equal(t, 1, e.Watch(now.Add(2*limit), limit))
			require.Zero(t, e.Open())
			for range 2 * sessionChunk {
				require.NotSame(t, tx.s, e.begin(false).s)
			}
			require.False(t, it.Next())
			require.ErrorIs(t, it.Err(), fault.ErrSnapshotTooOld)
			it.Close()
			require.ErrorIs(t, e.put(tx, 1, "a", 0), fault.ErrSnapshotTooOld)
			require.ErrorIs(t, tx.SetDurability(e.Durability), fault.ErrSnapshotTooOld)
			require.ErrorIs(t, end(tx), fault.ErrSnapshotTooOld)
			require.ErrorIs(t, end(tx), fault.ErrTxDone)
			require.True(t, tx.s.claim())
			tx.s.release()
		})
	}
}

// TestExpiryUnderWay: the owner is told the same while its transaction is being
// ended, and gives the session back then too.
func TestExpiryUnderWay(t *testing.T) {
	e := newEngine(t)
	tx := e.begin(true)
	now := time.Now()
	e.Watch(now, limit)
	tx.s.mu.Lock() // where undo will wait
	ended, told := make(chan int), make(chan error)
	go func() { ended <- e.Watch(now.Add(2*limit), limit) }()
	idle := tx.s.state.Load()
	for tx.s.state.Load() == idle {
		runtime.Gosched()
	}
	require.ErrorIs(t, e.put(tx, 1, "a", 0), fault.ErrSnapshotTooOld)
	go func() { told <- tx.Rollback() }()
	tx.s.mu.Unlock()
	require.Equal(t, 1, <-ended)
	require.ErrorIs(t, <-told, fault.ErrSnapshotTooOld)
	require.True(t, tx.s.claim())
	tx.s.release()
}

func TestOpenTransactions(t *testing.T) {
	e := newEngine(t, func(c *Config) { c.Trace = true })
	require.Empty(t, e.OpenTransactions(time.Now()))
	now := time.Now()
	reader := e.begin(false)
	e.Watch(now, 0)
	writer := e.begin(true)
	one := writer.Scan(e.table, byID, index.Range{}, 0)
	two := writer.Scan(e.table, byID, index.Range{}, 0)
	open := e.OpenTransactions(now.Add(time.Hour))
	require.Len(t, open, 2)
	require.Equal(t, time.Hour, open[0].Age)
	require.False(t, open[0].Writable)
	require.Zero(t, open[1].Age)
	require.True(t, open[1].Writable)
	require.Equal(t, 2, open[1].Iterators)
	require.True(t, strings.Contains(open[1].Began(), "TestOpenTransactions"), open[1].Began())
	one.Close()
	one.Close()
	require.Equal(t, 1, e.OpenTransactions(now)[1].Iterators)
	two.Close()
	require.Zero(t, e.OpenTransactions(now)[1].Iterators)
	require.NoError(t, writer.Rollback())

	ended := e.Close()
	require.Len(t, ended, 1)
	require.ErrorIs(t, reader.Rollback(), fault.ErrClosed)
	require.Empty(t, e.Close(), "again")
}
