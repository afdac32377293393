package rebuild

import (
	"context"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// Name is the strategy's name in options and stored files.
const Name = "rebuild"

// Strategy makes indexes without checkpoints.
type Strategy struct{}

var _ index.Strategy = Strategy{}

func (Strategy) Name() string { return Name }

func (Strategy) Persistent() bool { return false }

func (Strategy) Create(spec index.Spec) (index.Index, error) {
	return newTree(spec), nil
}

func (Strategy) NewBuilder(spec index.Spec) (index.Builder, error) {
	return &builder{tree: newTree(spec)}, nil
}

// Open always returns index.ErrNoCheckpoint.
func (Strategy) Open(context.Context, index.Spec, []index.FileInfo) (index.Index, error) {
	return nil, index.ErrNoCheckpoint
}

// builder inserts in order, which keeps the path to the right edge of the tree
// in the cache.
type builder struct {
	tree *tree
	last entry
}

func (b *builder) Add(key []byte, row rowid.ID) error {
	b.tree.checkRow(row)
	e := view(key, row.Ordinal())
	if before(e, b.last) {
		return index.ErrOrder
	}
	b.last = e.own()
	b.tree.add(b.last)
	return nil
}

func (b *builder) Finish() (index.Index, error) { return b.tree, nil }

func (b *builder) Abandon() { *b = builder{} }
