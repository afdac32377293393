package iacow

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/rowid"
)

const (
	// Name is the strategy's name in options and stored files.
	Name = "iacow"
	// Extension is that of node files.
	Extension = "iacow"
)

// Strategy makes and opens indexes with copy-on-write checkpoints.
type Strategy struct{}

var _ index.Strategy = Strategy{}

func (Strategy) Name() string { return Name }

func (Strategy) Persistent() bool { return true }

func (Strategy) Create(spec index.Spec) (index.Index, error) {
	x := newIndex(spec, nil)
	var err error
	if x.tree, err = btree.New(x.config()); err != nil {
		return nil, errors.Join(err, x.store.close())
	}
	return x, nil
}

func newIndex(spec index.Spec, last *image) *Index {
	return &Index{spec: spec, store: newStore(spec.Arena, last), salt: rand.Uint64}
}

func (x *Index) config() btree.Config {
	table, name, _ := strings.Cut(x.spec.Name, ".")
	return btree.Config{Arena: x.spec.Arena, Store: x.store, Owner: x.spec.Arena.NewOwner(), Table: table, Index: name}
}

func (Strategy) NewBuilder(spec index.Spec) (index.Builder, error) {
	x := newIndex(spec, nil)
	b, err := btree.NewBuilder(x.config(), btree.DefaultFill)
	if err != nil {
		return nil, errors.Join(err, x.store.close())
	}
	return &builder{Builder: b, x: x}, nil
}

// builder makes an Index around the tree that it builds.
type builder struct {
	*btree.Builder
	x *Index
}

func (b *builder) Add(key []byte, row rowid.ID) error { return b.Builder.Add(key, row) }

func (b *builder) Finish() (index.Index, error) {
	x := b.x
	var err error
	if x.tree, err = b.Builder.Finish(); err != nil {
		return nil, err
	}
	b.x = nil
	return x, nil
}

func (b *builder) Abandon() {
	if b.x == nil {
		return
	}
	// All memory is the store's; the tree need not be walked.
	if err := b.x.store.close(); err != nil {
		b.x.spec.Logger.Warn("abandoned index", "index", b.x.spec.Name, "error", err)
	}
	b.x = nil
}

// Open maps the files of a checkpoint and reads no more than the headers of all
// and the footer of the newest.
func (Strategy) Open(_ context.Context, spec index.Spec, files []index.FileInfo) (index.Index, error) {
	if len(files) == 0 {
		return nil, index.ErrNoCheckpoint
	}
	im, err := openImage(&spec, files)
	if err != nil {
		return nil, err
	}
	x := newIndex(spec, im)
	x.tree = btree.Open(x.config(), btree.NodeID(im.root), int64(im.entries), int64(im.nodes))
	x.mapped.Store(true)
	x.faultsExpected = true
	x.verifier = startVerifier(&x.spec, im)
	return x, nil
}
