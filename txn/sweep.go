package txn

import (
	"errors"

	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/logstream"
)

// Sweeper removes the entries of suspects. It is the only caller of
// Index.Remove. The zero value is ready; it is used by one goroutine.
type Sweeper struct {
	ask  func() bool // dead, made once so that a sweep does not allocate
	m    *Manager
	t    *Table
	g    Garbage
	cold logstream.Address

	use KeyUse // what the chain said last
	err error
}

// Sweep removes the entry of a suspect if, under the key's latch, no version of
// the row has the key. Nothing is read under the latch: if the row's chain ends
// in the log, the record there has to be known not to have the key, and cold is
// its address. done is false if the chain ends at another address, so that the
// suspect has to be judged again. The caller is pinned.
func (w *Sweeper) Sweep(m *Manager, h *epoch.Handle, t *Table, g Garbage, cold logstream.Address) (removed, done bool, err error) {
	w.m, w.t, w.g, w.cold = m, t, g, cold
	w.use, w.err = KeyUse{}, nil
	if w.ask == nil {
		w.ask = w.dead
	}
	removed, err = t.Indexes[g.Index].Remove(h, g.Key, g.Row, w.ask)
	return removed, !w.moved(), errors.Join(err, w.err)
}

func (w *Sweeper) dead() bool {
	w.use, w.err = w.m.KeyUse(w.t, w.g.Row.Ordinal(), int(w.g.Index), w.g.Key)
	return w.err == nil && !w.use.Held && !w.moved()
}

// moved reports that the chain ended at another place of the log.
func (w *Sweeper) moved() bool { return w.use.Cold != 0 && w.use.Cold != w.cold }

// drop removes an entry that this transaction has just taken its version away
// from: at once, because a key that many transactions fail to get would
// otherwise collect entries faster than the collector removes them. What cannot
// be judged here is left to the collector: a row in the log, and a key that only
// old snapshots still see in the row, because the suspect of the commit that took
// it away may have been dropped on account of the version that goes now. It
// returns false then.
func (s *session) drop(t *Table, ordinal uint64, index int, key []byte) bool {
	g := Garbage{Row: t.row(ordinal), Kind: GarbageSuspect, Index: uint8(index), Key: key}
	_, done, err := s.sweeper.Sweep(s.m, s.h, t, g, 0)
	if !done || err != nil || s.sweeper.use.replaced() {
		s.m.Garbage.add(g)
		return false
	}
	return true
}
