package btree

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/invariants"
)

// memory is the tree as a strategy without checkpoints.
type memory struct {
	t     testing.TB
	store func(*arena.Arena) Store
}

func (memory) Name() string     { return "btree" }
func (memory) Persistent() bool { return false }

func (m memory) config(spec index.Spec) Config {
	return Config{Arena: spec.Arena, Store: m.store(spec.Arena), Table: "t", Index: spec.Name}
}

func (m memory) Create(spec index.Spec) (index.Index, error) {
	t, err := New(m.config(spec))
	return checked{t, m.t, spec}, err
}

func (m memory) NewBuilder(spec index.Spec) (index.Builder, error) {
	b, err := NewBuilder(m.config(spec), DefaultFill)
	return builder{b, m.t, spec}, err
}

func (memory) Open(context.Context, index.Spec, []index.FileInfo) (index.Index, error) {
	return nil, index.ErrNoCheckpoint
}

type builder struct {
	*Builder
	t    testing.TB
	spec index.Spec
}

func (b builder) Finish() (index.Index, error) {
	t, err := b.Builder.Finish()
	return checked{t, b.t, b.spec}, err
}

func (b builder) Abandon() { require.NoError(b.t, b.Builder.Abandon()) }

// checked is validated when it is closed.
type checked struct {
	*Tree
	t    testing.TB
	spec index.Spec
}

func (c checked) Close() error {
	h := c.spec.Domain.Register()
	h.Pin()
	err := c.Validate()
	h.Unpin()
	require.NoError(c.t, err)
	defer func() {
		if table, ok := c.store.(interface{ Close() }); ok {
			table.Close()
		}
	}()
	return c.Tree.Close()
}

func TestConformance(t *testing.T) {
	for i, kind := range kinds {
		if i > 0 && invariants.Enabled {
			break // the stress tests run over all kinds, at a price to be paid there
		}
		t.Run(kind.name, func(t *testing.T) { indextest.Run(t, memory{t, kind.store}) })
	}
}
