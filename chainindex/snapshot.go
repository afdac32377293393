package chainindex

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// ErrBusy says that an index cannot be frozen once more for now, because
// checkpoints keep being abandoned.
var ErrBusy = errors.New("chainindex: too many frozen layers")

// Snapshot is the index as it was at one moment, and what has changed since: it
// keeps the layers of that time, and the heads that came after it, whatever
// becomes of the chain. It serves to build a tree that is to follow the index:
//
//	s, _ := x.Snapshot(ctx)
//	s.Each(ctx, add)        // into a tree; the index goes on meanwhile
//	x.Follow(ctx, tree)     // now every change goes to both
//	s.Replay(ctx)           // what changed in between
//	x.Complete()
//	s.Close()
//
// It is used by one goroutine.
type Snapshot struct {
	x      *Index
	h      *epoch.Handle
	layers []*layer
	since  atomic.Pointer[[]*layer] // heads after the snapshot that were frozen, oldest first
}

// Snapshot freezes the head and waits for operations in flight. An index has
// one snapshot at a time.
func (x *Index) Snapshot(ctx context.Context) (*Snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.chain.Load().frozen()) >= maxFrozen || x.snapshot != nil {
		return nil, ErrBusy
	}
	if err := x.freeze(); err != nil {
		return nil, err
	}
	if err := x.settleFrozen(ctx); err != nil {
		return nil, err
	}
	s := &Snapshot{x: x, h: x.spec.Domain.Register(), layers: x.chain.Load().layers[1:]}
	s.since.Store(new([]*layer))
	for _, l := range s.layers {
		l.retain()
	}
	x.snapshot = s
	return s, nil
}

// note keeps a head that is about to be frozen. Under Index.mu, and before the
// chain with the next head can be seen.
func (s *Snapshot) note(head *layer) {
	head.retain()
	since := append(slices.Clone(*s.since.Load()), head)
	s.since.Store(&since)
}

// Len returns about how many entries Each has to go through.
func (s *Snapshot) Len() int64 { return totalSize(s.layers) }

// Each calls fn for every entry of the snapshot, ascending. Keys are valid
// during the call.
func (s *Snapshot) Each(ctx context.Context, fn func(key []byte, row rowid.ID) error) error {
	table := s.x.spec.Table
	_, _, err := pour(ctx, s.h, s.layers, true, func(key []byte, place rowid.ID) error {
		return fn(key, rowid.Make(table, placeOrdinal(place)))
	})
	return err
}

// Replay brings the follower up to date with what changed between the snapshot
// and the beginning of Follow: key by key, under the key's latch. Changes that
// come meanwhile are made by their writers in both.
func (s *Snapshot) Replay(ctx context.Context) error {
	f := s.x.follower.Load()
	if f == nil {
		return ErrDropped
	}
	c := s.x.chain.Load() // before since: a head that is frozen in between is then in both, not in none
	for _, l := range append(slices.Clone(*s.since.Load()), c.head()) {
		if err := s.replayLayer(ctx, f.tree, l); err != nil {
			return err
		}
	}
	return nil
}

// ErrDropped says that the follower could not take a change.
var ErrDropped = errors.New("chainindex: follower was dropped")

// replayLayer goes through a layer that may be the head. The layer cannot go
// away: it is the head or among those that the snapshot keeps.
func (s *Snapshot) replayLayer(ctx context.Context, tree *btree.Tree, l *layer) error {
	var c index.Cursor
	b := index.Batch{First: bulkFill, Max: bulkFill}
	w := s.x.works.get(nil)
	defer s.x.works.put(w)
	for more := true; more; {
		var err error
		s.h.Pin()
		more, err = l.scan(s.h, index.Range{}, &c, &b)
		s.h.Unpin()
		if err != nil {
			return err
		}
		for i := range b.Len() {
			if err := s.replayEntry(w, tree, b.Key(i), placeOrdinal(b.Row(i))); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// replayEntry makes the tree agree with the newest layer since the snapshot
// that knows the entry. If none does any more, its writer has seen to the tree.
func (s *Snapshot) replayEntry(w *work, tree *btree.Tree, key []byte, ordinal uint64) error {
	w.setKey(key)
	s.h.Pin()
	defer s.h.Unpin()
	latch := s.x.latches.of(key)
	latch.Lock()
	defer latch.Unlock()
	f, err := s.latest(w, ordinal)
	if err != nil || f == 0 {
		return err
	}
	row := rowid.Make(s.x.spec.Table, ordinal)
	if f&isLive != 0 {
		return tree.Insert(s.h, key, row, nil)
	}
	_, err = tree.Remove(s.h, key, row, always)
	return err
}

// latest returns what is known of an entry since the snapshot. The key is
// latched: what is frozen meanwhile, for this key, is as it will be.
func (s *Snapshot) latest(w *work, ordinal uint64) (finding, error) {
	head := s.x.chain.Load().head()
	f, err := head.probe(s.h, w, ordinal)
	since := *s.since.Load()
	for i := len(since) - 1; f == 0 && err == nil && i >= 0; i-- {
		f, err = since[i].probe(s.h, w, ordinal)
	}
	return f, err
}

// Close lets go of the layers.
func (s *Snapshot) Close() {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	for _, l := range slices.Concat(s.layers, *s.since.Load()) {
		s.x.release(l)
	}
	s.x.snapshot = nil
}
