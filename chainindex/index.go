package chainindex

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/epoch"
)

// Index is a chain of trees. It is safe for concurrent use.
type Index struct {
	spec     index.Spec
	chain    atomic.Pointer[chain]
	follower atomic.Pointer[follower]
	latches  latches
	works    workList
	plan     func(fresh int64, files []*layer) int // filesToMerge

	mu        sync.Mutex // serialises changes of the chain
	unsettled bool       // somebody may be writing into a frozen layer still
	capturing bool
	handle    *epoch.Handle // see checkpointHandle
	snapshot  *Snapshot     // to be told of heads that are frozen

	stop       context.CancelFunc // ends the verifier
	background sync.WaitGroup
}

var (
	_ index.Index        = (*Index)(nil)
	_ index.BatchLooker  = (*Index)(nil)
	_ index.Checkpointer = (*Index)(nil)
)

// New returns an empty index. The error is fault.ErrMemoryLimit.
func New(spec index.Spec) (*Index, error) { return newIndex(spec, nil) }

// newIndex returns an index with the given files, newest first, which it takes
// over.
func newIndex(spec index.Spec, files []*layer) (*Index, error) {
	tree, err := btree.New(TreeConfig(&spec))
	if err != nil {
		return nil, err
	}
	return indexOf(spec, append([]*layer{newLayer(tree, 0)}, files...)), nil
}

// indexOf returns an index of a head and files.
func indexOf(spec index.Spec, layers []*layer) *Index {
	x := &Index{spec: spec, plan: filesToMerge}
	x.chain.Store(&chain{layers, 1})
	return x
}

// Stats counts an entry once for each layer that has it, and takes a tombstone
// for one that removes one entry.
func (x *Index) Stats() index.Stats {
	var s index.Stats
	for _, l := range x.chain.Load().layers {
		t := l.tree.Stats()
		s.Entries += t.Entries - 2*l.tombs.Load()
		if l.file == nil {
			s.Bytes += t.Bytes
		} else {
			s.Bytes += l.file.checked.bytes()
			s.Mapped += l.file.info.Size
		}
	}
	s.Entries = max(0, s.Entries)
	return s
}

// Close ends the verifier. Memory and mappings are released when no pin that
// exists now is left.
func (x *Index) Close() error {
	if x.stop != nil {
		x.stop()
	}
	x.background.Wait()
	for _, l := range x.chain.Load().layers {
		x.release(l)
	}
	return nil
}

// joinAbandon gives up a builder after an error.
func joinAbandon(err error, b *btree.Builder) error { return errors.Join(err, b.Abandon()) }
