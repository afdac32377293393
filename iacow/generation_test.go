package iacow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/rowid"
)

// TestIncrementalBytes touches a hundredth of the leaves between checkpoints.
func TestIncrementalBytes(t *testing.T) {
	const entries = 200_000
	r := newRig(t)
	r.model = map[pair]bool{}
	insert := func(i uint64, row rowid.ID) {
		r.h.Pin()
		defer r.h.Unpin()
		require.NoError(t, r.x.Insert(r.h, []byte(integer(i*0x9e3779b97f4a7c15)), row, nil))
	}
	for i := range uint64(entries) {
		insert(i, 1)
	}
	full := r.publish()[0].Size
	leaves := int(full / blockBytes)
	var total int64
	const rounds = 40
	for round := range rounds {
		for range leaves / 100 {
			insert(r.rnd.Uint64N(entries), rowid.ID(2+round))
		}
		files := r.publish()
		require.Equal(t, r.number, files[0].Checkpoint)
		total += files[0].Size
		if len(files) > 1 && round < MaxGenerations-1 {
			require.LessOrEqual(t, files[0].Size*100, 3*full, "round %d", round)
		}
		require.Less(t, size(files), 3*full, "old generations go")
	}
	require.LessOrEqual(t, total*100, 5*rounds*full, "on average over generations that are merged")
}

// TestNothingChanged: a checkpoint without changes writes no file.
func TestNothingChanged(t *testing.T) {
	r := newRig(t)
	r.fill(1000)
	files := r.publish()
	p := pair{integer(7777), 1}
	for round := range 4 {
		require.Equal(t, files, r.publish())
		if round == 2 {
			r.reopen()
			continue
		}
		r.begin().Abandon()
		c := r.begin()
		require.Equal(t, files, r.write(c))
		c.Abandon()
	}
	r.insert(p)
	require.Greater(t, len(r.publish()), 1)
	r.checkKept()
}

// TestFullCheckpoint: when most has changed all is written, and one file is left.
func TestFullCheckpoint(t *testing.T) {
	r := newRig(t)
	r.fill(3000)
	require.Len(t, r.publish(), 1)
	r.insert(pair{integer(5), 2})
	require.Len(t, r.publish(), 2)
	for i := range uint64(2000) {
		r.insert(pair{integer(i), 3})
	}
	require.Len(t, r.publish(), 1)
	r.check()
	r.reopen()
	r.check()
}

// TestUnmapping: files that are no longer referred to are unmapped, those that
// are stay.
func TestUnmapping(t *testing.T) {
	r := newRig(t)
	for i := range uint64(30_000) {
		r.insert(pair{integer(i), 1})
	}
	r.publish()
	r.reopen()
	for range 30 {
		i := r.rnd.Uint64N(29_000)
		for j := range uint64(600) {
			r.insert(pair{integer(i + j), 2})
		}
		files := r.publish()
		r.begin().Abandon() // lets go of what the last one left behind
		require.Equal(t, size(files), r.x.Stats().Mapped)
		require.LessOrEqual(t, len(files), MaxGenerations)
	}
	r.check()
}
