package txn

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/rowid"
)

func piece(i int) Garbage {
	g := Garbage{CTS: uint64(i), Row: rowid.Make(1, uint64(i+1)), Kind: GarbageKind(1 + i%3)}
	if g.Kind == GarbageSuspect {
		g.Index, g.Key = uint8(i%7), fmt.Append(nil, "key ", i)
	}
	return g
}

// TestGarbageList: first in first out over the borders of chunks, appended to
// with its counts and keys.
func TestGarbageList(t *testing.T) {
	const n = 2*garbageChunkItems + 100
	var list, other GarbageList
	for i := range n {
		list.Add(piece(i))
	}
	for i := range n {
		require.Equal(t, piece(i), withKey(list.At(i)))
	}
	for i := n; i < n+10; i++ {
		other.Add(piece(i))
	}
	list.Append(&other)
	require.Zero(t, other.Len())
	require.Zero(t, other.Count(GarbageSuspect))
	for i := n + 10; i < n+20; i++ {
		list.Add(piece(i))
	}
	i := 0
	list.All(func(g Garbage) { require.Equal(t, piece(i), withKey(g)); i++ })
	require.Equal(t, n+20, i)
	for i := range n + 20 {
		require.Equal(t, n+20-i, list.Len())
		require.Equal(t, list.Len(), list.Count(GarbageVersions)+list.Count(GarbageSuspect)+list.Count(GarbageRow))
		g, ok := list.First()
		require.True(t, ok)
		require.Equal(t, piece(i), withKey(g))
		list.Drop()
	}
	_, ok := list.First()
	require.False(t, ok)
}

func withKey(g Garbage) Garbage {
	if len(g.Key) == 0 {
		g.Key = nil
	}
	return g
}

// TestQueueWakes: whoever waits for garbage is not left asleep, neither by a
// piece that comes at that very time nor by who takes it.
func TestQueueWakes(t *testing.T) {
	var q Queue
	q.init()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan bool)
	wait := func() { waits <- q.Wait(ctx) }
	go wait()
	q.add(piece(1))
	require.True(t, <-waits)
	var waiting, due GarbageList
	q.Take(&waiting, &due) // on behalf of somebody else, before the collector waits
	q.Wake()
	go wait()
	require.True(t, <-waits)
	go wait()
	cancel()
	require.False(t, <-waits)
}
