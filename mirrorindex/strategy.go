package mirrorindex

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle/chainindex"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/rowid"
)

// Name is the strategy's name in options and stored files.
const Name = "mirrorindex"

// Strategy makes indexes of this package.
type Strategy struct{}

var _ index.Strategy = Strategy{}

func (Strategy) Name() string { return Name }

func (Strategy) Persistent() bool { return true }

func (Strategy) Create(spec index.Spec) (index.Index, error) {
	chain, err := chainindex.New(spec)
	if err != nil {
		return nil, err
	}
	mirror, err := btree.New(chainindex.TreeConfig(&spec))
	if err != nil {
		return nil, errors.Join(err, chain.Close())
	}
	return newIndex(spec, chain, mirror), nil
}

func (Strategy) Open(ctx context.Context, spec index.Spec, files []index.FileInfo) (index.Index, error) {
	chain, err := chainindex.Open(ctx, spec, files)
	if err != nil {
		return nil, err
	}
	x := &Index{spec: spec, chain: chain}
	x.startBuilding()
	return x, nil
}

func (Strategy) NewBuilder(spec index.Spec) (index.Builder, error) {
	chain, err := chainindex.NewBuilder(spec)
	if err != nil {
		return nil, err
	}
	mirror, err := btree.NewBuilder(chainindex.TreeConfig(&spec), btree.DefaultFill)
	if err != nil {
		chain.Abandon()
		return nil, err
	}
	return &builder{spec, chain, mirror}, nil
}

// builder loads chain and mirror side by side.
type builder struct {
	spec   index.Spec
	chain  *chainindex.Builder
	mirror *btree.Builder
}

func (b *builder) Add(key []byte, row rowid.ID) error {
	if err := b.chain.Add(key, row); err != nil {
		return err
	}
	return b.mirror.Add(key, row)
}

func (b *builder) Finish() (index.Index, error) {
	mirror, err := b.mirror.Finish()
	if err != nil {
		return nil, err
	}
	chain, err := b.chain.FinishIndex()
	if err != nil {
		return nil, errors.Join(err, mirror.Close())
	}
	return newIndex(b.spec, chain, mirror), nil
}

func (b *builder) Abandon() {
	b.chain.Abandon()
	if err := b.mirror.Abandon(); err != nil {
		b.spec.Logger.Warn("load of an index was not released", "index", b.spec.Name, "error", err)
	}
}
