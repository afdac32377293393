package indextest

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// table is the table whose indexes are tested.
const table rowid.Table = 7

// T is what a case needs of *testing.T.
type T interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// testCase is one promise, or a few that belong together.
type testCase struct {
	name       string
	persistent bool // only for strategies with checkpoints
	run        func(T, *fixture)
}

func cases() []testCase {
	var all []testCase
	all = append(all, entryCases()...)
	all = append(all, checkerCases()...)
	all = append(all, rangeCases()...)
	all = append(all, resumeCases()...)
	all = append(all, modelCases()...)
	all = append(all, loadCases()...)
	all = append(all, concurrentCases()...)
	return append(all, checkpointCases()...)
}

// Run runs the suite.
func Run(t *testing.T, s index.Strategy) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			if c.persistent && !s.Persistent() {
				t.Skip("the strategy keeps no files")
			}
			c.run(t, newFixture(t, s))
		})
	}
}

// fixture is one case's private database around its indexes.
type fixture struct {
	t        T
	strategy index.Strategy
	spec     index.Spec
	rand     *rand.Rand
}

func newFixture(t T, s index.Strategy) *fixture {
	mem := arena.New(arena.Config{})
	domain := epoch.NewDomain(mem)
	t.Cleanup(func() {
		domain.Close()
		require.NoError(t, mem.Close())
	})
	return &fixture{t: t, strategy: s, rand: newRand(t), spec: index.Spec{
		Table:      table,
		Number:     3,
		Name:       "orders.by_customer",
		DatabaseID: [16]byte{1, 2, 3},
		Arena:      mem,
		Domain:     domain,
		FS:         vfs.OS(),
		Logger:     slog.New(slog.DiscardHandler),
	}}
}

func newRand(t T) *rand.Rand {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("INDEXTEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("INDEXTEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// create makes an empty index that is closed at the end of the case.
func (f *fixture) create() *session {
	ix, err := f.strategy.Create(f.spec)
	require.NoError(f.t, err)
	return f.adopt(ix)
}

// adopt opens a session on an index and closes the index at the end.
func (f *fixture) adopt(ix index.Index) *session {
	f.t.Cleanup(func() { require.NoError(f.t, ix.Close()) })
	return f.session(ix)
}

// session is for one more goroutine on the same index.
func (f *fixture) session(ix index.Index) *session {
	return &session{ix: ix, h: f.spec.Domain.Register()}
}

// row is the n-th row of the table, from 1.
func row(n int) rowid.ID { return rowid.Make(table, uint64(n)) }
