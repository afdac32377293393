package btree

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// effort is a number of operations, less of them in the slow builds.
func effort(n int) int {
	if invariants.Enabled {
		return n / 8
	}
	return n
}

// forKindsKeys runs over what makes nodes different, without the slow kinds.
func forKindsKeys(t *testing.T, fn func(t *testing.T, r *rig, key func(uint64) []byte)) {
	keys := []struct {
		name string
		make func(i uint64) []byte
	}{
		{"fixed", func(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15) }},
		{"rest", func(i uint64) []byte {
			return binary.BigEndian.AppendUint64([]byte("shared bytes before the number "), i*0x9e3779b97f4a7c15)
		}},
		{"long", func(i uint64) []byte {
			if i%4 > 0 {
				return binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15)
			}
			return append(binary.BigEndian.AppendUint64(nil, i%64), make([]byte, 100+i%900)...)
		}},
	}
	for _, kind := range kinds {
		for _, k := range keys {
			t.Run(kind.name+"/"+k.name, func(t *testing.T) { fn(t, newRig(t, kind.store), k.make) })
		}
	}
}

// worker is one goroutine's access.
type worker struct {
	*rig
	h   *epoch.Handle
	rnd *rand.Rand
}

func (r *rig) run(n int, fn func(w *worker, i int) error) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			w := &worker{r, r.domain.Register(), rand.New(rand.NewPCG(uint64(i), 9))}
			if err := fn(w, i); err != nil {
				r.t.Error(err)
			}
		})
	}
	wg.Wait()
}

func (w *worker) insert(key []byte, row rowid.ID, c index.Checker) error {
	w.h.Pin()
	defer w.h.Unpin()
	return w.Insert(w.h, key, row, c)
}

func (w *worker) remove(key []byte, row rowid.ID) (bool, error) {
	w.h.Pin()
	defer w.h.Unpin()
	return w.Remove(w.h, key, row, always)
}

func (w *worker) lookup(key []byte) ([]rowid.ID, error) {
	w.h.Pin()
	defer w.h.Unpin()
	return w.Lookup(w.h, key, nil)
}

// TestOwnKeys has each goroutine change keys of its own, side by side with the
// others', and know exactly what it has.
func TestOwnKeys(t *testing.T) {
	const workers = 4
	forKindsKeys(t, func(t *testing.T, r *rig, key func(uint64) []byte) {
		var total atomic.Int64
		r.run(workers, func(w *worker, me int) error {
			have := make(map[uint64]bool)
			for range effort(4000) {
				i := w.rnd.Uint64N(600)*workers + uint64(me)
				if err := w.toggle(key(i), rowid.ID(i+1), have[i]); err != nil {
					return err
				}
				have[i] = !have[i]
			}
			for i, is := range have {
				if is {
					total.Add(1)
				}
				if err := w.expect(key(i), rowid.ID(i+1), is); err != nil {
					return err
				}
			}
			return nil
		})
		r.validate()
		require.Equal(t, total.Load(), r.Stats().Entries)
	})
}

var errWrong = errors.New("the tree says otherwise")

// toggle changes whether the entry is there, and looks before and after.
func (w *worker) toggle(key []byte, row rowid.ID, is bool) error {
	if err := w.expect(key, row, is); err != nil {
		return err
	}
	if !is {
		return errors.Join(w.insert(key, row, nil), w.expect(key, row, true))
	}
	if ok, err := w.remove(key, row); !ok {
		return errors.Join(errWrong, err)
	}
	return w.expect(key, row, false)
}

func (w *worker) expect(key []byte, row rowid.ID, is bool) error {
	rows, err := w.lookup(key)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r == row {
			if is {
				return nil
			}
			return errWrong
		}
	}
	if is {
		return errWrong
	}
	return nil
}

// refuse is a checker that lets nobody in beside another.
type refuse struct{}

var errTaken = errors.New("taken")

func (refuse) Check(rowid.ID) error { return errTaken }

// TestUnique lets everybody insert the same keys: one of them gets each.
func TestUnique(t *testing.T) {
	forKindsKeys(t, func(t *testing.T, r *rig, key func(uint64) []byte) {
		var won [200]atomic.Int32
		r.run(4, func(w *worker, me int) error {
			for range effort(3000) {
				i := w.rnd.Uint64N(uint64(len(won)))
				row := rowid.ID(i*10 + uint64(me) + 1)
				switch err := w.insert(key(i), row, refuse{}); {
				case errors.Is(err, errTaken):
				case err != nil:
					return err
				default:
					if n := won[i].Add(1); n > 1 && !w.owns(key(i), row) {
						return errWrong
					}
					if ok, err := w.remove(key(i), row); !ok {
						return errors.Join(errWrong, err)
					}
					won[i].Add(-1)
				}
			}
			return nil
		})
		r.validate()
		require.Zero(t, r.Stats().Entries)
	})
}

// owns reports whether only this row has the key.
func (w *worker) owns(key []byte, row rowid.ID) bool {
	rows, err := w.lookup(key)
	return err == nil && len(rows) == 1 && rows[0] == row
}

// TestUniqueSpread is TestUnique for one key whose entries fill many leaves. The
// checker counts who is inside, which is one at a time.
func TestUniqueSpread(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			r := newRig(t, kind.store)
			for i := range rowid.ID(500) {
				require.NoError(t, r.insert([]byte("key"), 10*i+5))
			}
			c := &lonely{}
			r.run(3, func(w *worker, me int) error {
				for range effort(400) {
					row := 10*rowid.ID(w.rnd.IntN(520)) + rowid.ID(me)
					if err := w.insert([]byte("key"), row, c); err != nil {
						return err
					}
					if ok, err := w.remove([]byte("key"), row); !ok {
						return errors.Join(errWrong, err)
					}
				}
				return nil
			})
			r.validate()
			require.Equal(t, int64(500), r.Stats().Entries)
			require.NotZero(t, c.calls.Load())
		})
	}
}

// lonely is a checker that must not be run by two at once.
type lonely struct {
	inside atomic.Int32
	calls  atomic.Int64
}

func (c *lonely) Check(rowid.ID) error {
	defer c.inside.Add(-1)
	c.calls.Add(1)
	if c.inside.Add(1) > 1 {
		return errWrong
	}
	return nil
}

// TestScanUnderChange scans both ways while other keys come and go: an entry
// that is there throughout is seen exactly once, and the order is strict.
func TestScanUnderChange(t *testing.T) {
	const keys = 1500
	forKindsKeys(t, func(t *testing.T, r *rig, key func(uint64) []byte) {
		for i := range uint64(keys) {
			require.NoError(t, r.insert(key(2*i), rowid.ID(2*i+1)))
		}
		steady := r.scan(index.Range{})
		var stop atomic.Bool
		r.run(4, func(w *worker, me int) error {
			if me < 2 {
				defer stop.Store(true)
				return w.scanSteady(steady, me == 1)
			}
			for !stop.Load() {
				i := 2*w.rnd.Uint64N(keys) + 1
				if err := w.insert(key(i), rowid.ID(i+1), nil); err != nil {
					return err
				}
				i = 2*w.rnd.Uint64N(keys) + 1
				if _, err := w.remove(key(i), rowid.ID(i+1)); err != nil {
					return err
				}
			}
			return nil
		})
		r.validate()
	})
}

// TestScanWhileMerging scans both ways while whole leaves fill and empty, so that
// they split and merge around the scans: each must be in strict order.
func TestScanWhileMerging(t *testing.T) {
	const window = 400
	forKindsKeys(t, func(t *testing.T, r *rig, key func(uint64) []byte) {
		var stop atomic.Bool
		r.run(4, func(w *worker, me int) error {
			if me < 2 {
				defer stop.Store(true)
				return w.scanOrdered(effort(2000), me == 1)
			}
			for n := uint64(0); !stop.Load(); n++ {
				i := 2*(n%(4*window)) + uint64(me%2)
				if err := w.insert(key(i), rowid.ID(i+1), nil); err != nil {
					return err
				}
				i = 2*((n+3*window)%(4*window)) + uint64(me%2)
				if _, err := w.remove(key(i), rowid.ID(i+1)); err != nil {
					return err
				}
			}
			return nil
		})
		r.validate()
	})
}

func (w *worker) scanOrdered(rounds int, reverse bool) error {
	for range rounds {
		if err := w.eachOrdered(reverse, func(entry) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// eachOrdered scans the whole tree and fails if an entry is out of order or visit
// does not accept it.
func (w *worker) eachOrdered(reverse bool, visit func(entry) bool) error {
	var c index.Cursor
	var b index.Batch
	last := entry{}
	for more := true; more; {
		w.h.Pin()
		var err error
		more, err = w.Scan(w.h, index.Range{Reverse: reverse}, &c, &b)
		w.h.Unpin()
		if err != nil {
			return err
		}
		for i := range b.Len() {
			e := entry{string(b.Key(i)), b.Row(i)}
			if last.row > 0 && less(last, e) == reverse || !visit(e) {
				return errWrong
			}
			last = e
		}
	}
	return nil
}

// scanSteady expects the steady entries, whose rows are odd.
func (w *worker) scanSteady(steady []entry, reverse bool) error {
	for range effort(16) {
		n := 0
		err := w.eachOrdered(reverse, func(e entry) bool {
			if e.row%2 == 0 {
				return true
			}
			at := n
			if reverse {
				at = len(steady) - 1 - n
			}
			n++
			return at >= 0 && at < len(steady) && steady[at] == e
		})
		if err != nil {
			return err
		}
		if n != len(steady) {
			return errWrong
		}
	}
	return nil
}

// TestBatchUnderChange looks up steady keys together while others change.
func TestBatchUnderChange(t *testing.T) {
	const keys = 1000
	forKindsKeys(t, func(t *testing.T, r *rig, key func(uint64) []byte) {
		for i := range uint64(keys) {
			require.NoError(t, r.insert(key(2*i), rowid.ID(2*i+1)))
		}
		var stop atomic.Bool
		r.run(3, func(w *worker, me int) error {
			if me == 0 {
				defer stop.Store(true)
				return w.batches(keys, key)
			}
			for !stop.Load() {
				i := 2*w.rnd.Uint64N(keys) + 1
				if err := w.insert(key(i), rowid.ID(i+1), nil); err != nil {
					return err
				}
				if _, err := w.remove(key(i), rowid.ID(i+1)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (w *worker) batches(n uint64, key func(uint64) []byte) error {
	for range effort(800) {
		var keys [][]byte
		var want []rowid.ID
		for range w.rnd.IntN(40) {
			i := 2 * w.rnd.Uint64N(n)
			keys, want = append(keys, key(i)), append(want, rowid.ID(i+1))
		}
		w.h.Pin()
		rows, ends, err := w.LookupBatch(w.h, keys, nil, nil)
		w.h.Unpin()
		if err != nil {
			return err
		}
		from := 0
		for i, end := range ends {
			found := false
			for _, row := range rows[from:end] {
				found = found || row == want[i]
			}
			if !found {
				return errWrong
			}
			from = end
		}
	}
	return nil
}

// TestGrowAndShrink has everybody fill and empty the tree, so that splits and
// merges meet, up to the root.
func TestGrowAndShrink(t *testing.T) {
	forKindsKeys(t, func(t *testing.T, r *rig, key func(uint64) []byte) {
		r.run(3, func(w *worker, me int) error {
			for round := range uint64(3) {
				n := uint64(effort(1500))
				for i := range n {
					if err := w.insert(key(i), rowid.ID(10*i+uint64(me)+1), nil); err != nil {
						return err
					}
				}
				for i := range n {
					at := (i*7 + round) % n
					if ok, err := w.remove(key(at), rowid.ID(10*at+uint64(me)+1)); !ok {
						return errors.Join(errWrong, err)
					}
				}
			}
			return nil
		})
		r.validate()
		require.Equal(t, index.Stats{Bytes: NodeSize}, r.Stats())
	})
}
