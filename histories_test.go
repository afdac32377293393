package rekindle_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/isolationtest"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var (
	historyRounds = flag.Int("histories.rounds", 1, "rounds of TestHistories for each strategy and form of the lists")
	historySeed   = flag.Uint64("histories.seed", 0, "seed of TestHistories, 0 for a random one")
)

// lists keep lists in a database. An append looks at what is there and adds one
// value at the end.
type lists interface {
	append(tx *rekindle.Tx, key, value int64) error
	read(tx *rekindle.Tx, key int64) ([]int64, error)
}

// listRow is a list in one row: appends replace it, the first one inserts it.
type listRow struct {
	ID     int64 `rekindle:",pk"`
	Values []byte
}

type rowLists struct{ *rekindle.Table[listRow] }

func (l rowLists) read(tx *rekindle.Tx, key int64) (list []int64, err error) {
	row := listRow{ID: key}
	if err := l.Get(tx, &row); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
		return nil, err
	}
	for b := row.Values; len(b) > 0; b = b[8:] {
		list = append(list, int64(binary.LittleEndian.Uint64(b)))
	}
	return list, nil
}

func (l rowLists) append(tx *rekindle.Tx, key, value int64) error {
	row := listRow{ID: key}
	if err := l.Get(tx, &row); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
		return err
	}
	row.Values = binary.LittleEndian.AppendUint64(row.Values, uint64(value))
	return l.Upsert(tx, &row)
}

// listEntry is one value of a list that is a range of the primary key: appends
// count it and insert at a key that was absent.
type listEntry struct {
	List  int64 `rekindle:",pk"`
	Place int32 `rekindle:",pk"`
	Value int64
}

type rangeLists struct{ *rekindle.Table[listEntry] }

func (l rangeLists) read(tx *rekindle.Tx, key int64) (list []int64, err error) {
	for e, err := range l.Scan(tx, rekindle.Query{Prefix: rekindle.Key(key)}) {
		if err != nil {
			return nil, err
		}
		list = append(list, e.Value)
	}
	return list, nil
}

func (l rangeLists) append(tx *rekindle.Tx, key, value int64) error {
	list, err := l.read(tx, key)
	if err != nil {
		return err
	}
	return l.Insert(tx, &listEntry{key, int32(len(list)), value})
}

// listLink is one value of a list that is a range of a secondary index. Lists
// are read backwards. Values move: an append makes the row of the last value that
// of the new one and inserts the old one again.
type listLink struct {
	ID    int64 `rekindle:",pk"`
	List  int64 `rekindle:",unique=place:1"`
	Place int32 `rekindle:",unique=place:2"`
	Value int64
}

type indexLists struct{ *rekindle.Table[listLink] }

func (l indexLists) read(tx *rekindle.Tx, key int64) (list []int64, err error) {
	for e, err := range l.Scan(tx, rekindle.Query{Index: "place", Prefix: rekindle.Key(key), Reverse: true}) {
		if err != nil {
			return nil, err
		}
		list = append(list, e.Value)
	}
	slices.Reverse(list)
	return list, nil
}

func (l indexLists) append(tx *rekindle.Tx, key, value int64) error {
	for e, err := range l.Scan(tx, rekindle.Query{Index: "place", Prefix: rekindle.Key(key), Reverse: true, Limit: 1}) {
		if err != nil {
			return err
		}
		if err := l.Update(tx, &listLink{e.ID, key, e.Place + 1, value}); err != nil {
			return err
		}
		return l.Insert(tx, &listLink{value, key, e.Place, e.Value})
	}
	return l.Insert(tx, &listLink{value, key, 0, value})
}

func openLists(t *testing.T, db *rekindle.DB, form string) lists {
	t.Helper()
	open := map[string]func() (lists, error){
		"rows": func() (lists, error) {
			l, err := rekindle.OpenTable[listRow](t.Context(), db, form)
			return rowLists{l}, err
		},
		"range": func() (lists, error) {
			l, err := rekindle.OpenTable[listEntry](t.Context(), db, form)
			return rangeLists{l}, err
		},
		"index": func() (lists, error) {
			l, err := rekindle.OpenTable[listLink](t.Context(), db, form)
			return indexLists{l}, err
		},
	}
	l, err := open[form]()
	require.NoError(t, err)
	return l
}

// TestHistories lets clients read lists and append to them, through checkpoints,
// compaction, rows that leave memory and garbage collection, a clean restart and a
// power cut, and takes what they saw to the checker of package isolationtest: the
// only anomalies may be those that snapshot isolation allows, in the order of time
// too. For more: -histories.rounds 100.
func TestHistories(t *testing.T) {
	var sum recorded
	for round := range *historyRounds {
		seed := *historySeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		for _, strategy := range rekindle.IndexStrategies() {
			for _, form := range []string{"rows", "range", "index"} {
				t.Run(fmt.Sprintf("%s, %s, seed %d", strategy, form, seed), func(t *testing.T) {
					r := &recorded{t: t, form: form, rng: rand.New(rand.NewPCG(seed, uint64(round)))}
					r.lives(rekindle.Options{IndexStrategy: strategy, SegmentBytes: 64 << 10})
					r.check()
					sum.add(r)
				})
			}
		}
	}
	t.Logf("%d histories of %d transactions and %d operations, %d committed, %d skews", sum.histories, len(sum.txs), sum.operations, sum.committed, sum.skews)
	require.Greater(t, sum.committed, 100*sum.histories)
}

// recorded is a history in the making.
type recorded struct {
	t     *testing.T
	form  string
	rng   *rand.Rand
	clock atomic.Int64
	value atomic.Int64

	mu  sync.Mutex
	txs []isolationtest.Tx

	histories, operations, committed, skews int
}

func (r *recorded) add(other *recorded) {
	r.histories++
	r.txs = append(r.txs, other.txs...)
	r.operations += other.operations
	r.committed += other.committed
	r.skews += other.skews
}

// lives runs a life that ends cleanly, one that ends in a power cut, and one more.
// Which transactions a power cut leaves is known only of what was durable.
func (r *recorded) lives(o rekindle.Options) {
	fs := vfs.NewMem()
	switch r.rng.IntN(3) {
	case 0:
		o.MemoryBudget = 1
	case 1:
		o = o.Eager()
	}
	durable := r.rng.IntN(4) > 0
	if !durable {
		o.Durability = rekindle.None
	}
	for life := range 3 {
		db, err := rekindle.Open(r.t.Context(), "/db", o.OnFS(fs))
		require.NoError(r.t, err)
		cut := r.run(db, o, fs, durable && life == 1)
		if life == 2 {
			r.readAll(db)
		}
		_, err = db.CrossCheck(r.t.Context())
		require.NoError(r.t, err)
		require.NoError(r.t, db.Close(r.t.Context()))
		if cut != nil {
			fs = cut
		}
	}
}

const (
	historyClients = 8
	historyTime    = 25 * time.Millisecond
	activeLists    = 5
)

// run lets clients and the background work go for a moment, and cuts the power in
// the middle of it if that is wanted.
func (r *recorded) run(db *rekindle.DB, o rekindle.Options, fs *vfs.Mem, cutting bool) (cut *vfs.Mem) {
	l := openLists(r.t, db, r.form)
	var stop atomic.Bool
	var group sync.WaitGroup
	first := len(r.txs)
	for range historyClients {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
		group.Go(func() {
			for !stop.Load() {
				r.transaction(db, l, rng)
			}
		})
	}
	group.Go(func() {
		for !stop.Load() {
			if err := db.Checkpoint(r.t.Context()); err != nil {
				r.t.Error(err)
			}
			if o.MemoryBudget > 0 {
				db.FreezeNow()
			}
			time.Sleep(time.Millisecond)
		}
	})
	time.Sleep(historyTime)
	if cutting {
		before := r.clock.Add(1)
		cut = fs.CrashClone(r.rng, vfs.Random)
		after := r.clock.Add(1)
		time.Sleep(historyTime / 8)
		defer func() { r.txs = append(r.txs[:first], survivors(r.txs[first:], before, after)...) }()
	}
	stop.Store(true)
	group.Wait()
	return cut
}

// survivors is what is known of the transactions of a life when the power was cut
// between two moments: those that were acknowledged have happened, those under way
// may have, and those that began later have not.
func survivors(txs []isolationtest.Tx, before, after int64) (known []isolationtest.Tx) {
	for _, tx := range txs {
		if tx.Begin > after {
			continue
		}
		if tx.End > before && tx.Outcome == isolationtest.Committed {
			tx.Outcome = isolationtest.Unknown
		}
		known = append(known, tx)
	}
	return known
}

// transaction runs a random one and records it.
func (r *recorded) transaction(db *rekindle.DB, l lists, rng *rand.Rand) {
	writable := rng.IntN(3) > 0
	rec := isolationtest.Tx{Begin: r.clock.Add(1)}
	tx, err := db.Begin(r.t.Context(), writable)
	if err != nil {
		r.t.Error(err)
		return
	}
	for range 1 + rng.IntN(4) {
		if err = r.operation(tx, l, rng, writable, &rec); err != nil {
			break
		}
	}
	if err != nil || rng.IntN(10) == 0 {
		rec.Outcome = isolationtest.Aborted
		err = errors.Join(err, tx.Rollback())
	} else if err = tx.Commit(r.t.Context()); err != nil {
		rec.Outcome = isolationtest.Aborted
	}
	rec.End = r.clock.Add(1)
	if err != nil && !errors.Is(err, rekindle.ErrConflict) {
		r.t.Error(err)
	}
	r.mu.Lock()
	r.txs = append(r.txs, rec)
	r.mu.Unlock()
}

// operation works on one of the lists that are in use now: old ones would become
// long.
func (r *recorded) operation(tx *rekindle.Tx, l lists, rng *rand.Rand, writable bool, rec *isolationtest.Tx) error {
	key := r.value.Load()/60 + rng.Int64N(activeLists)
	if writable && rng.IntN(2) == 0 {
		value := r.value.Add(1)
		rec.Ops = append(rec.Ops, isolationtest.Append(key, value))
		return l.append(tx, key, value)
	}
	list, err := l.read(tx, key)
	if err == nil {
		rec.Ops = append(rec.Ops, isolationtest.Read(key, list...))
	}
	return err
}

// readAll is the last transaction of a history.
func (r *recorded) readAll(db *rekindle.DB) {
	l := openLists(r.t, db, r.form)
	rec := isolationtest.Tx{Begin: r.clock.Add(1)}
	require.NoError(r.t, db.View(r.t.Context(), func(tx *rekindle.Tx) error {
		for key := range r.value.Load()/60 + activeLists {
			list, err := l.read(tx, key)
			if err != nil {
				return err
			}
			rec.Ops = append(rec.Ops, isolationtest.Read(key, list...))
		}
		return nil
	}))
	rec.End = r.clock.Add(1)
	r.txs = append(r.txs, rec)
}

func (r *recorded) check() {
	for _, tx := range r.txs {
		r.operations += len(tx.Ops)
		if tx.Outcome == isolationtest.Committed {
			r.committed++
		}
	}
	for _, a := range isolationtest.Check(r.txs) {
		if a.Snapshot() {
			r.skews++
			continue
		}
		r.t.Error(a)
	}
}
