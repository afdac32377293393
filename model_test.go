package rekindle_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var modelSeed = flag.Uint64("model.seed", 0, "seed of TestModel, 0 for random ones")

// TestModel runs random statements on the engine and on a map, with commits,
// rollbacks, checkpoints, clean restarts and power cuts between them.
func TestModel(t *testing.T) {
	runs := 6
	if testing.Short() {
		runs = 2
	}
	var moved int64
	for range runs {
		seed := drawSeed()
		for _, strategy := range rekindle.IndexStrategies() {
			o := rekindle.Options{IndexStrategy: strategy}
			t.Run(fmt.Sprintf("%s, seed %d", strategy, seed), func(t *testing.T) { newModel(t, o, seed).run(150) })
			t.Run(fmt.Sprintf("%s, compacting, seed %d", strategy, seed), func(t *testing.T) {
				m := newModel(t, o.Eager(), seed)
				m.notes = 8000 // more bytes, so that segments come and go
				m.run(300)
				moved += m.moved
			})
		}
	}
	require.NotZero(t, moved)
}

func drawSeed() uint64 {
	if *modelSeed != 0 {
		return *modelSeed
	}
	return rand.Uint64()
}

// forModels runs a test with models of each strategy, in every second run while their
// records move in the log.
func forModels(t *testing.T, o rekindle.Options, test func(m *model)) {
	runs := 3
	if testing.Short() {
		runs = 1
	}
	for run := range runs {
		seed := drawSeed()
		for _, strategy := range rekindle.IndexStrategies() {
			t.Run(fmt.Sprintf("%s, seed %d", strategy, seed), func(t *testing.T) {
				o := o
				o.IndexStrategy = strategy
				if run%2 == 0 {
					o = o.Eager()
				}
				test(newModel(t, o, seed))
			})
		}
	}
}

type model struct {
	t     *testing.T
	rng   *rand.Rand
	fs    *vfs.Mem
	opts  rekindle.Options
	notes int   // bytes of a note are fewer
	moved int64 // rows, by compactions
	db    *rekindle.DB
	items *rekindle.Table[item]
	rows  map[int64]item // what is committed
}

func newModel(t *testing.T, o rekindle.Options, seed uint64) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem(), opts: o, notes: 3000, rows: map[int64]item{}}
	m.opts.SegmentBytes, m.opts.LogStreams = 64<<10, 1+m.rng.IntN(3)
	m.db, m.items = openItems(t, m.fs, m.opts)
	return m
}

func (m *model) run(steps int) {
	for range steps {
		switch n := m.rng.IntN(100); {
		case n < 75:
			m.transaction()
		case n < 85:
			require.NoError(m.t, m.db.Checkpoint(m.t.Context()))
		case n < 90:
			m.close()
			m.reopen()
		case n < 97:
			next := m.fs.CrashClone(m.rng, vfs.Random)
			m.close()
			m.fs = next
			m.reopen()
		default:
			m.compare(m.db)
		}
	}
	m.compare(m.db)
	m.close()
}

func (m *model) close() {
	m.moved += m.db.Stats().CompactedRows
	require.NoError(m.t, m.db.Close(m.t.Context()))
}

func (m *model) reopen() {
	m.db, m.items = openItems(m.t, m.fs, m.opts)
	m.compare(m.db)
}

// compare checks the whole content and every index.
func (m *model) compare(db *rekindle.DB) {
	_, err := db.CrossCheck(m.t.Context())
	require.NoError(m.t, err)
	var want []item
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		want = append(want, m.rows[id])
	}
	require.Equal(m.t, want, allItems(m.t, db, m.items))
}

func (m *model) transaction() {
	if m.opts.MemoryBudget > 0 {
		m.db.FreezeNow()
	}
	tx, err := m.db.Begin(m.t.Context(), true)
	require.NoError(m.t, err)
	rows := maps.Clone(m.rows)
	for range 1 + m.rng.IntN(30) {
		m.statement(tx, rows)
	}
	if m.rng.IntN(4) == 0 {
		require.NoError(m.t, tx.Rollback())
		return
	}
	require.NoError(m.t, tx.Commit(m.t.Context()))
	m.rows = rows
}

// statement runs one statement and checks that it says what the map says.
func (m *model) statement(tx *rekindle.Tx, rows map[int64]item) {
	row := item{ID: int64(m.rng.IntN(40)), Name: fmt.Sprint(m.rng.IntN(60)), Group: int32(m.rng.IntN(4))}
	if m.rng.IntN(3) == 0 {
		note := string(make([]byte, m.rng.IntN(m.notes)))
		row.Note = &note
	}
	_, exists := rows[row.ID]
	taken := nameTaken(rows, row)
	switch m.rng.IntN(6) {
	case 0:
		m.expect(m.items.Insert(tx, &row), exists || taken, rekindle.ErrDuplicateKey, func() { rows[row.ID] = row })
	case 1:
		err := m.items.Update(tx, &row)
		if !exists {
			require.ErrorIs(m.t, err, rekindle.ErrNotFound)
			return
		}
		m.expect(err, taken, rekindle.ErrDuplicateKey, func() { rows[row.ID] = row })
	case 2:
		m.expect(m.items.Upsert(tx, &row), taken, rekindle.ErrDuplicateKey, func() { rows[row.ID] = row })
	case 3:
		m.expect(m.items.Delete(tx, &row), !exists, rekindle.ErrNotFound, func() { delete(rows, row.ID) })
	case 4:
		got := item{Name: row.Name}
		want, found := byName(rows, row.Name)
		m.expect(m.items.GetBy(tx, "name", &got), !found, rekindle.ErrNotFound, func() { require.Equal(m.t, want, got) })
	case 5:
		m.scan(tx, rows, row.Group)
	}
}

func (m *model) expect(err error, fails bool, with error, otherwise func()) {
	if fails {
		require.ErrorIs(m.t, err, with)
		return
	}
	require.NoError(m.t, err)
	otherwise()
}

func (m *model) scan(tx *rekindle.Tx, rows map[int64]item, group int32) {
	var want, got []int64
	for id, row := range rows {
		if row.Group == group {
			want = append(want, id)
		}
	}
	for row, err := range m.items.Scan(tx, rekindle.Query{Index: "group", Prefix: rekindle.Key(group)}) {
		require.NoError(m.t, err)
		got = append(got, row.ID)
	}
	require.ElementsMatch(m.t, want, got)
}

func nameTaken(rows map[int64]item, row item) bool {
	other, found := byName(rows, row.Name)
	return found && other.ID != row.ID
}

func byName(rows map[int64]item, name string) (item, bool) {
	for _, row := range rows {
		if row.Name == name {
			return row, true
		}
	}
	return item{}, false
}

// errStop ends a transaction function on purpose.
var errStop = errors.New("stop")

func TestUpdateRollsBackOnError(t *testing.T) {
	db, items := openItems(t, vfs.NewMem(), rekindle.Options{})
	err := db.Update(t.Context(), func(tx *rekindle.Tx) error {
		require.NoError(t, items.Insert(tx, &item{ID: 1}))
		return errStop
	})
	require.ErrorIs(t, err, errStop)
	require.Empty(t, allItems(t, db, items))
	require.NoError(t, db.Close(t.Context()))
}
