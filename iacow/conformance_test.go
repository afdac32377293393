package iacow

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// validated is the strategy with indexes that are looked through when they are
// closed.
type validated struct {
	Strategy
	t testing.TB
}

func (v validated) Create(spec index.Spec) (index.Index, error) {
	ix, err := v.Strategy.Create(spec)
	return v.wrap(ix, err)
}

func (v validated) Open(ctx context.Context, spec index.Spec, files []index.FileInfo) (index.Index, error) {
	ix, err := v.Strategy.Open(ctx, spec, files)
	return v.wrap(ix, err)
}

func (v validated) wrap(ix index.Index, err error) (index.Index, error) {
	if err != nil {
		return nil, err
	}
	return checked{ix.(*Index), v.t}, nil
}

type checked struct {
	*Index
	t testing.TB
}

func (c checked) Close() error {
	if err := c.validate(); err != nil && !isDamage(err) {
		require.NoError(c.t, err)
	}
	return c.Index.Close()
}

// TestConformance maps files, where the race detector does not look on, which
// sees nothing in mappings.
func TestConformance(t *testing.T) {
	if invariants.Enabled {
		indextest.Run(t, noMap{validated{t: t}})
	} else {
		indextest.Run(t, validated{t: t})
	}
}

// noMap is the strategy on a file system without mappings.
type noMap struct{ validated }

func (s noMap) Create(spec index.Spec) (index.Index, error) {
	spec.FS = vfs.NoMap(spec.FS)
	return s.validated.Create(spec)
}

func (s noMap) Open(ctx context.Context, spec index.Spec, files []index.FileInfo) (index.Index, error) {
	spec.FS = vfs.NoMap(spec.FS)
	return s.validated.Open(ctx, spec, files)
}
