package mirrorindex

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rekindledb/rekindle/chainindex"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/rowid"
)

// Progress says how far the mirror is.
type Progress struct {
	Ready bool  // reads use the mirror
	Done  int64 // entries put into it
	Total int64 // about how many there are to put into it; 0 if it was there from the start
}

// Progress may be called at any time.
func (x *Index) Progress() Progress {
	return Progress{x.mirror.Load() != nil, x.progress.done.Load(), x.progress.total.Load()}
}

type progress struct{ done, total atomic.Int64 }

// startBuilding makes the mirror of a chain that was opened. Until it is there,
// and if it cannot be made, the chain serves. Recovery comes first, because the
// mirror may take all the memory there is before it turns out that it needs more.
func (x *Index) startBuilding() {
	ctx, cancel := context.WithCancel(context.Background())
	x.stop = cancel
	x.background.Go(func() {
		if recovered := x.spec.Recovered; recovered != nil {
			select {
			case <-recovered:
			case <-ctx.Done():
				return
			}
		}
		if err := x.build(ctx); err != nil && ctx.Err() == nil {
			x.spec.Logger.Warn("index is served by its chain, without a mirror", "index", x.spec.Name, "error", err)
		}
	})
}

// build makes the mirror of a snapshot, lets it follow the chain, and brings it
// up to date with what changed in between.
func (x *Index) build(ctx context.Context) error {
	s, err := x.chain.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := x.load(ctx, s)
	if err != nil {
		return err
	}
	if err := x.adopt(ctx, s, tree); err != nil {
		x.chain.Unfollow()
		x.release(tree)
		return err
	}
	x.mirror.Store(tree)
	return nil
}

// progressStep is how many entries are put into the mirror between two reports.
const progressStep = 1 << 12

// load makes a tree of the entries of a snapshot.
func (x *Index) load(ctx context.Context, s *chainindex.Snapshot) (*btree.Tree, error) {
	x.progress.total.Store(s.Len())
	b, err := btree.NewBuilder(chainindex.TreeConfig(&x.spec), btree.DefaultFill)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	err = s.Each(ctx, func(key []byte, row rowid.ID) error {
		if n++; n%progressStep == 0 {
			x.progress.done.Store(n)
		}
		return b.Add(key, row)
	})
	if err != nil {
		return nil, errors.Join(err, b.Abandon())
	}
	x.progress.done.Store(n)
	x.progress.total.Store(n)
	tree, err := b.Finish()
	if err != nil {
		return nil, errors.Join(err, b.Abandon())
	}
	return tree, nil
}

// adopt makes a tree that has a snapshot's entries the complete follower.
func (x *Index) adopt(ctx context.Context, s *chainindex.Snapshot, tree *btree.Tree) error {
	if err := x.chain.Follow(ctx, tree); err != nil {
		return err
	}
	if err := s.Replay(ctx); err != nil {
		return err
	}
	if !x.chain.Complete() {
		return chainindex.ErrDropped
	}
	return nil
}
