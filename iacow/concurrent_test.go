package iacow

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// writer inserts its numbers in ascending order and removes each window numbers
// later, so what it has done is known from how far it has come: after n
// operations it has inserted (n+1)/2 + window/2 numbers, about.
type writer struct {
	w      int
	key    func(w int, i uint64) []byte
	window uint64
	ops    atomic.Uint64 // ended
}

// op is the n-th operation, from 0: numbers up to the window are inserted, then
// it is remove and insert in turn.
func (w *writer) op(x *Index, h *epoch.Handle, n uint64) error {
	h.Pin()
	defer h.Unpin()
	insert, number := w.step(n)
	if insert {
		return x.Insert(h, w.key(w.w, number), rowid.Make(testTable, number+1), nil)
	}
	removed, err := x.Remove(h, w.key(w.w, number), rowid.Make(testTable, number+1), func() bool { return true })
	if err == nil && !removed {
		err = fmt.Errorf("number %d of writer %d was not there", number, w.w)
	}
	return err
}

func (w *writer) step(n uint64) (insert bool, number uint64) {
	if n < w.window {
		return true, n
	}
	n -= w.window
	return n%2 == 0, n/2 + (1-n%2)*w.window
}

// after returns what is present after n operations: numbers from lo to below hi.
func (w *writer) after(n uint64) (lo, hi uint64) {
	if n <= w.window {
		return 0, n
	}
	n -= w.window
	return n / 2, w.window + (n+1)/2
}

// scattered numbers end up all over the index, those of one writer in an order
// of its own.
func scattered(w int, i uint64) []byte {
	key := []byte{byte(w)}
	return binary.BigEndian.AppendUint64(key, i*0x9e3779b97f4a7c15)
}

// queue keys are removed at one end and inserted at the other.
func queue(w int, i uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(w), 'q'}, i)
}

func longQueue(w int, i uint64) []byte {
	return append([]byte(strings.Repeat("long ", 90+int(i%700))), scattered(w, i)...)
}

// TestCheckpointsUnderLoad takes checkpoints all the time while writers work, and
// opens every one of them: what it has of a writer must be what that had after
// some operation between the beginning and the end of BeginCheckpoint.
func TestCheckpointsUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    func(w int, i uint64) []byte
		window uint64
		reopen bool
	}{
		{"scattered", scattered, 4000, false},
		{"scattered, reopened", scattered, 2000, true},
		{"queue", queue, 500, false},
		{"long keys", longQueue, 40, false},
		{"long keys, reopened", longQueue, 100, true},
	} {
		t.Run(c.name, func(t *testing.T) { checkpointsUnderLoad(t, c.key, c.window, c.reopen) })
	}
}

func checkpointsUnderLoad(t *testing.T, key func(int, uint64) []byte, window uint64, reopen bool) {
	const writers = 3
	r := newRig(t)
	r.spec.FS = vfs.NoMap(r.fs) // so that the race detector sees what is read
	r.x.spec.FS = r.spec.FS
	r.shrink = true
	list := make([]*writer, writers)
	for w := range list {
		list[w] = &writer{w: w, key: key, window: window}
	}
	if reopen {
		r.run(list, window)
		r.publish()
		r.reopen()
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, w := range list {
		wg.Go(func() {
			h := r.spec.Domain.Register()
			for !stop.Load() {
				n := w.ops.Load()
				if err := w.op(r.x, h, n); err != nil {
					t.Error(err)
					return
				}
				w.ops.Store(n + 1)
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	for round := range effort(16) {
		r.captureUnderLoad(list, round%4 == 3)
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, r.x.validate())
	r.captureUnderLoad(list, false)
}

// run makes the first n operations of all writers.
func (r *rig) run(list []*writer, n uint64) {
	for _, w := range list {
		for i := w.ops.Load(); i < n; i++ {
			require.NoError(r.t, w.op(r.x, r.h, i))
		}
		w.ops.Store(n)
	}
}

// captureUnderLoad takes a checkpoint and opens it.
func (r *rig) captureUnderLoad(list []*writer, abandon bool) {
	r.t.Helper()
	var before, after []uint64
	for _, w := range list {
		before = append(before, w.ops.Load())
	}
	c := r.begin()
	for _, w := range list {
		after = append(after, w.ops.Load()+1)
	}
	files := r.write(c)
	x := r.open(files)
	defer func() { require.NoError(r.t, x.Close()) }()
	require.NoError(r.t, x.validate())
	got, err := scanAll(x, r.h)
	require.NoError(r.t, err)
	have := map[pair]bool{}
	for _, p := range got {
		have[p] = true
	}
	total := 0
	for i, w := range list {
		total += r.requirePrefix(w, have, before[i], after[i])
	}
	require.Equal(r.t, total, len(got))
	if abandon {
		c.Abandon()
		r.letGo()
		return
	}
	r.published(c, files, nil)
	runtime.Gosched()
}

// requirePrefix finds a number of operations of a writer that explains what a
// checkpoint has of it.
func (r *rig) requirePrefix(w *writer, have map[pair]bool, before, after uint64) (entries int) {
	r.t.Helper()
	first, _ := w.after(before)
	_, end := w.after(after)
	var present []uint64
	for i := first; i < end; i++ {
		if have[pair{string(w.key(w.w, i)), rowid.Make(testTable, i+1)}] {
			present = append(present, i)
		}
	}
	for n := before; n <= after; n++ {
		lo, hi := w.after(n)
		if uint64(len(present)) != hi-lo {
			continue
		}
		if len(present) == 0 || present[0] == lo && present[len(present)-1] == hi-1 {
			return len(present)
		}
	}
	require.Fail(r.t, "not the work of a writer", "writer %d, operations %d to %d", w.w, before, after)
	return 0
}

// TestScanDuringCheckpoints lets a scan over the whole index go on in small steps
// while entries come and go and checkpoints, merges and the unmapping of files
// happen. It must see all that was there throughout, once.
func TestScanDuringCheckpoints(t *testing.T) {
	r := newRig(t)
	r.shrink = true
	lasting := map[pair]bool{}
	for i := range uint64(6000) {
		p := pair{integer(i * 64), rowid.Make(testTable, 1)}
		r.insert(p)
		lasting[p] = true
	}
	r.publish()
	r.reopen()
	var c index.Cursor
	var b index.Batch
	var got []pair
	reader := r.spec.Domain.Register()
	for more := true; more; {
		for range 40 {
			p := pair{integer(r.rnd.Uint64N(uint64(len(lasting)) * 64)), rowid.Make(testTable, 2)}
			if r.model[p] {
				r.remove(p)
			} else {
				r.insert(p)
			}
		}
		if len(got)%3 == 0 {
			r.publish()
		}
		reader.Pin()
		var err error
		more, err = r.x.Scan(reader, index.Range{}, &c, &b)
		reader.Unpin()
		require.NoError(t, err)
		for i := range b.Len() {
			if p := (pair{string(b.Key(i)), b.Row(i)}); lasting[p] {
				got = append(got, p)
			}
		}
	}
	require.Equal(t, sorted(lasting), got)
	require.Greater(t, r.number, uint64(MaxGenerations+2))
	r.check()
}
