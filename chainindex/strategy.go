package chainindex

import (
	"context"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/rowid"
)

// Name is the strategy's name in options and stored files.
const Name = "chainindex"

// Strategy makes indexes of this package.
type Strategy struct{}

var _ index.Strategy = Strategy{}

func (Strategy) Name() string { return Name }

func (Strategy) Persistent() bool { return true }

func (Strategy) Create(spec index.Spec) (index.Index, error) { return New(spec) }

func (Strategy) NewBuilder(spec index.Spec) (index.Builder, error) { return NewBuilder(spec) }

func (Strategy) Open(ctx context.Context, spec index.Spec, files []index.FileInfo) (index.Index, error) {
	return Open(ctx, spec, files)
}

// Builder loads an index whose head has everything.
type Builder struct {
	spec index.Spec
	tree *btree.Builder
}

// NewBuilder begins an index. The error is fault.ErrMemoryLimit.
func NewBuilder(spec index.Spec) (*Builder, error) {
	tree, err := btree.NewBuilder(TreeConfig(&spec), btree.DefaultFill)
	if err != nil {
		return nil, err
	}
	return &Builder{spec, tree}, nil
}

func (b *Builder) Add(key []byte, row rowid.ID) error {
	checkRow(&b.spec, row)
	return b.tree.Add(key, livePlace(row.Ordinal()))
}

// Finish returns the index.
func (b *Builder) Finish() (index.Index, error) { return b.FinishIndex() }

// FinishIndex is Finish with the type of the index.
func (b *Builder) FinishIndex() (*Index, error) {
	tree, err := b.tree.Finish()
	if err != nil {
		return nil, err
	}
	return indexOf(b.spec, []*layer{newLayer(tree, 0)}), nil
}

// Abandon releases what was built.
func (b *Builder) Abandon() {
	if err := b.tree.Abandon(); err != nil {
		b.spec.Logger.Warn("load of an index was not released", "index", b.spec.Name, "error", err)
	}
}
