package indextest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

func concurrentCases() []testCase {
	return []testCase{
		{name: "unique inserts race", run: uniqueRace},
		{name: "owners of unique keys change", run: owners},
		{name: "concurrent stress", run: stress},
	}
}

// parallel runs fn on n goroutines and fails the case with all their errors.
func (f *fixture) parallel(n int, fn func(i int, rng *rand.Rand) error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		rng := rand.New(rand.NewPCG(f.rand.Uint64(), 0))
		wg.Go(func() { errs[i] = fn(i, rng) })
	}
	wg.Wait()
	require.NoError(f.t, errors.Join(errs...))
}

// uniqueRace lets two goroutines insert the same keys at the same time, each
// for rows of its own. A row is alive from before its insert. Exactly one may
// get each key.
func uniqueRace(t T, f *fixture) {
	const keys, racers = 2000, 2
	s := f.create()
	var alive [keys*racers + 1]atomic.Bool
	var start [keys]sync.WaitGroup
	var wins [keys]atomic.Int32
	for i := range start {
		start[i].Add(racers)
	}
	unique := checkFunc(func(other rowid.ID) error {
		if alive[other.Ordinal()].Load() {
			return errTaken
		}
		return nil
	})
	f.parallel(racers, func(racer int, _ *rand.Rand) error {
		s := f.session(s.ix)
		for k := range keys {
			r := row(k*racers + racer + 1)
			start[k].Done()
			start[k].Wait()
			alive[r.Ordinal()].Store(true)
			switch err := s.insert(integerKey(uint64(k)), r, unique); err {
			case nil:
				wins[k].Add(1)
			case errTaken:
				alive[r.Ordinal()].Store(false)
			default:
				return err
			}
		}
		return nil
	})
	for k := range keys {
		require.EqualValues(t, 1, wins[k].Load(), "key %d", k)
	}
}

// registry is what the transaction layer knows in the owners case: which key a
// row has now, and who owns a key.
type registry struct {
	keyOf [ownerRows + 1]atomic.Int32 // by ordinal; 0 = dead
	owner [ownerKeys + 1]atomic.Uint64
}

const (
	ownerKeys = 4
	ownerRows = 6
)

// owners lets rows take and give up a few unique keys while a collector
// removes the entries of rows that gave up. It must never happen that a key has
// two owners, or that an owner's entry is missing.
func owners(t T, f *fixture) {
	const rounds = 3000
	s, reg := f.create(), &registry{}
	var running atomic.Int32
	running.Store(ownerRows)
	f.parallel(ownerRows+1, func(i int, rng *rand.Rand) error {
		s := f.session(s.ix)
		if i == ownerRows {
			return collectUntil(s, reg, rng, &running)
		}
		defer running.Add(-1)
		for range rounds {
			if err := own(s, reg, row(i+1), int32(1+rng.IntN(ownerKeys))); err != nil {
				return err
			}
		}
		return nil
	})
	for r := range ownerRows {
		for k := range ownerKeys {
			_, err := s.removeIf(ownerKey(int32(k+1)), row(r+1), func() bool { return true })
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.equals(&Model{}))
}

func ownerKey(k int32) string { return fmt.Sprintf("a key that is unique: %d", k) }

// own tries to be the owner of key k for a moment.
func own(s *session, reg *registry, r rowid.ID, k int32) error {
	keyOf := &reg.keyOf[r.Ordinal()]
	keyOf.Store(k)
	defer keyOf.Store(0)
	err := s.insert(ownerKey(k), r, checkFunc(func(other rowid.ID) error {
		if reg.keyOf[other.Ordinal()].Load() == k {
			return errTaken
		}
		return nil
	}))
	if err != nil {
		return ignoreTaken(err)
	}
	if !reg.owner[k].CompareAndSwap(0, uint64(r)) {
		return fmt.Errorf("key %d has the owners %v and %v", k, r, rowid.ID(reg.owner[k].Load()))
	}
	defer reg.owner[k].Store(0)
	runtime.Gosched() // time for others to do harm
	return s.findsRow(Entry{ownerKey(k), r}, true)
}

func ignoreTaken(err error) error {
	if err == errTaken {
		return nil
	}
	return err
}

// collectUntil removes entries of rows that do not have the key, until the
// owners are done.
func collectUntil(s *session, reg *registry, rng *rand.Rand, running *atomic.Int32) error {
	for running.Load() > 0 {
		r, k := row(1+rng.IntN(ownerRows)), int32(1+rng.IntN(ownerKeys))
		_, err := s.removeIf(ownerKey(k), r, func() bool { return reg.keyOf[r.Ordinal()].Load() != k })
		if err != nil {
			return err
		}
		runtime.Gosched() // on one processor, do not collect for a whole time slice
	}
	return nil
}

const (
	stressWriters  = 3
	stressScanners = 2
	stressKeys     = 3000
	stressOps      = 4000
)

// stress has writers with rows of their own under keys that all share, and
// scanners. Rows above the writers' are there throughout.
func stress(t T, f *fixture) {
	s := f.create()
	lasting := &Model{}
	for k := 0; k < stressKeys; k += 3 {
		e := Entry{stressKey(k), row(stressWriters + 1)}
		lasting.entries = append(lasting.entries, e)
		require.NoError(t, s.insert(e.Key, e.Row, nil))
	}
	slices.SortFunc(lasting.entries, compareEntries)
	var running atomic.Int32
	running.Store(stressWriters)
	models := make([]map[Entry]bool, stressWriters)
	f.parallel(stressWriters+stressScanners, func(i int, rng *rand.Rand) error {
		s := f.session(s.ix)
		if i >= stressWriters {
			return scanUntil(s, lasting, rng, &running)
		}
		defer running.Add(-1)
		models[i] = map[Entry]bool{}
		return churn(s, models[i], row(i+1), rng)
	})
	all := map[Entry]bool{}
	for _, e := range lasting.entries {
		all[e] = true
	}
	for _, m := range models {
		for e := range m {
			all[e] = true
		}
	}
	m := modelOf(all)
	require.NoError(t, s.equals(&m))
	require.EqualValues(t, m.Len(), s.ix.Stats().Entries)
}

// stressKey mixes short and long keys, next to each other in time but not in
// order.
func stressKey(k int) string {
	if k%2 == 0 {
		return integerKey(uint64(k) << 40)
	}
	return fmt.Sprintf("%04d of the keys under stress", k)
}

// churn inserts and removes entries of one row and looks them up.
func churn(s *session, present map[Entry]bool, r rowid.ID, rng *rand.Rand) error {
	for range stressOps {
		e := Entry{stressKey(rng.IntN(stressKeys)), r}
		var err error
		switch {
		case rng.IntN(4) == 0:
			err = s.findsRow(e, present[e])
		case present[e]:
			delete(present, e)
			err = s.mustRemove(e)
		default:
			present[e] = true
			err = s.insert(e.Key, e.Row, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) mustRemove(e Entry) error {
	removed, _, err := s.remove(e.Key, e.Row, true)
	if err == nil && !removed {
		err = fmt.Errorf("%v was there and was not removed", e)
	}
	return err
}

// findsRow looks for one row among those of others.
func (s *session) findsRow(e Entry, want bool) error {
	rows, err := s.lookup(e.Key)
	if err == nil && slices.Contains(rows, e.Row) != want {
		err = fmt.Errorf("lookup of %x: got %v, with %v: want %v", e.Key, rows, e.Row, want)
	}
	return err
}

// scanUntil scans ranges in both directions. What it gets must be in order,
// once each, and contain every lasting entry of the range.
func scanUntil(s *session, lasting *Model, rng *rand.Rand, running *atomic.Int32) error {
	space := keySpace{draw: func(rng *rand.Rand) string { return stressKey(rng.IntN(stressKeys)) }}
	for running.Load() > 0 {
		r := randomRange(rng, space)
		got, err := s.scan(r)
		if err != nil {
			return err
		}
		if err := inOrder(got, r); err != nil {
			return err
		}
		kept := slices.DeleteFunc(got, func(e Entry) bool { return e.Row != lasting.entries[0].Row })
		if err := sameEntries(lasting.Behind(r, &index.Cursor{}), kept); err != nil {
			return fmt.Errorf("lasting entries in %+v: %w", r, err)
		}
	}
	return nil
}

func inOrder(got []Entry, r index.Range) error {
	for i, e := range got {
		if !r.Contains([]byte(e.Key)) {
			return fmt.Errorf("%v is outside %+v", e, r)
		}
		if i == 0 {
			continue
		}
		if d := compareEntries(got[i-1], e); d == 0 || (d > 0) != r.Reverse {
			return fmt.Errorf("%v follows %v, reverse %v", e, got[i-1], r.Reverse)
		}
	}
	return nil
}

// refuseAll is the checker of a key that nobody else may have.
var refuseAll = checkFunc(func(rowid.ID) error { return errTaken })
