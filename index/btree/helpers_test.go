package btree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
)

// rig is a tree with everything below it.
type rig struct {
	*Tree
	t      testing.TB
	arena  *arena.Arena
	domain *epoch.Domain
	h      *epoch.Handle
}

// kinds are the ways of addressing that every test runs over.
var kinds = []struct {
	name  string
	store func(*arena.Arena) Store
}{
	{"direct", func(*arena.Arena) Store { return nil }},
	{"ids", func(a *arena.Arena) Store { return NewNodeTable(a) }},
	{"copies", func(a *arena.Arena) Store { return &restless{NodeTable: NewNodeTable(a)} }},
}

func newRig(t testing.TB, store func(*arena.Arena) Store) *rig {
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	tree, err := New(Config{Arena: a, Store: store(a), Table: "t", Index: "i"})
	require.NoError(t, err)
	r := &rig{Tree: tree, t: t, arena: a, domain: d, h: d.Register()}
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	require.NoError(r.t, r.Tree.Close())
	r.domain.Close()
	if table, ok := r.store.(interface{ Close() }); ok {
		table.Close()
	}
	require.Zero(r.t, r.arena.Stats().InUse, "memory is left over")
	require.NoError(r.t, r.arena.Close())
}

// validate checks the whole tree.
func (r *rig) validate() {
	r.t.Helper()
	r.h.Pin()
	defer r.h.Unpin()
	require.NoError(r.t, r.Tree.Validate())
}

func always() bool { return true }
