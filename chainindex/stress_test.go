package chainindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// parallel runs functions at the same time and fails the test with all errors.
func parallel(t *testing.T, fns ...func() error) {
	errs := make([]error, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() { errs[i] = fn() })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// checkpointUntil takes checkpoints, some of them abandoned, and gives the
// memory of replaced layers back.
func (r *rig) checkpointUntil(x *Index, done *atomic.Bool) error {
	rng := rand.New(rand.NewPCG(1, 1))
	for !done.Load() {
		r.number++
		c, err := x.BeginCheckpoint(context.Background(), r.number)
		if err != nil {
			return err
		}
		if rng.IntN(4) == 0 {
			c.Abandon()
			continue
		}
		if _, err := c.Write(context.Background(), r.createFile); err != nil {
			return err
		}
		if rng.IntN(4) == 0 {
			c.Abandon()
			continue
		}
		c.Published()
		r.domain.Reclaim()
		if n := x.Layers(); n > maxLayers {
			return fmt.Errorf("%d layers", n)
		}
	}
	return nil
}

// stressed is a goroutine's part of the index: the rows are its own, so it
// knows what the index has to say about them.
type stressed struct {
	*session
	rng  *rand.Rand
	row  rowid.ID
	mine map[string]bool
}

const stressKeys = 300

func (s *stressed) step() error {
	key := fmt.Sprintf("key %d", s.rng.IntN(stressKeys))
	s.h.Pin()
	defer s.h.Unpin()
	switch s.rng.IntN(5) {
	case 0, 1:
		var unique index.Checker
		if s.rng.IntN(2) == 0 {
			unique = allowAll{}
		}
		s.mine[key] = true
		return s.x.Insert(s.h, []byte(key), s.row, unique)
	case 2, 3:
		removed, err := s.x.Remove(s.h, []byte(key), s.row, always)
		if err == nil && removed != s.mine[key] {
			err = fmt.Errorf("%s: removed %v, present %v", key, removed, s.mine[key])
		}
		delete(s.mine, key)
		return err
	}
	rows, err := s.x.Lookup(s.h, []byte(key), nil)
	return errors.Join(err, s.check(key, rows))
}

func (s *stressed) check(key string, rows []rowid.ID) error {
	found := false
	for i, other := range rows {
		if i > 0 && rows[i-1] >= other {
			return fmt.Errorf("%s: rows %v", key, rows)
		}
		found = found || other == s.row
	}
	if found != s.mine[key] {
		return fmt.Errorf("%s: found %v, present %v", key, found, s.mine[key])
	}
	return nil
}

// scan looks for the own rows in a whole scan.
func (s *stressed) scanAll(reverse bool) error {
	got, err := s.tryScan(index.Range{Reverse: reverse}, 1+s.rng.IntN(100))
	if err != nil {
		return err
	}
	seen := 0
	for _, e := range got {
		if e.Row != s.row {
			continue
		}
		if seen++; !s.mine[e.Key] {
			return fmt.Errorf("%v was removed", e)
		}
	}
	if seen != len(s.mine) {
		return fmt.Errorf("scan finds %d of %d", seen, len(s.mine))
	}
	return nil
}

// Writers know what is theirs at any time, while layers are frozen, written,
// merged and given up.
func TestStress(t *testing.T) {
	for _, lag := range []bool{false, true} {
		t.Run(fmt.Sprint("lag ", lag), func(t *testing.T) {
			r := newRigOn(t, vfs.NewMem(), "/")
			x := r.create()
			if lag {
				x.plan = lagging
			}
			const writers = 3
			var done atomic.Bool
			var running atomic.Int32
			running.Store(writers)
			fns := []func() error{func() error { return r.checkpointUntil(x, &done) }}
			all := make([]*stressed, writers)
			for i := range writers {
				s := &stressed{r.session(x), rand.New(rand.NewPCG(uint64(i), 3)), row(i + 1), map[string]bool{}}
				all[i] = s
				fns = append(fns, func() error {
					defer func() { done.Store(running.Add(-1) == 0) }()
					for n := range scaled(40_000) {
						if err := s.step(); err != nil {
							return err
						}
						if n%2000 == 1999 {
							if err := s.scanAll(n%4000 == 3999); err != nil {
								return err
							}
						}
					}
					return nil
				})
			}
			parallel(t, fns...)
			t.Logf("%d checkpoints", r.number)
			m := &indextest.Model{}
			for _, s := range all {
				for key := range s.mine {
					m.Insert(indextest.Entry{Key: key, Row: s.row})
				}
			}
			r.session(x).equals(m)
			r.session(r.open(r.checkpoint(x))).equals(m)
		})
	}
}

// claims is what a transaction layer knows: which row has a key.
type claims [8]atomic.Uint64

// Owners of unique keys come and go while a collector removes what they leave,
// and layers change. No key ever has two owners.
func TestUniqueKeysUnderCheckpoints(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x := r.create()
	x.plan = lagging
	var done atomic.Bool
	var running atomic.Int32
	const owners = 3
	running.Store(owners)
	var holds [owners + 1]atomic.Int32 // by row: the key it has, plus one
	var owned claims
	fns := []func() error{
		func() error { return r.checkpointUntil(x, &done) },
		func() error { // the collector
			s, rng := r.session(x), rand.New(rand.NewPCG(9, 9))
			for !done.Load() {
				k, n := rng.IntN(len(owned)), 1+rng.IntN(owners)
				s.h.Pin()
				_, err := x.Remove(s.h, []byte{byte(k)}, row(n), func() bool { return holds[n].Load() != int32(k+1) })
				s.h.Unpin()
				if err != nil {
					return err
				}
				runtime.Gosched()
			}
			return nil
		},
	}
	for i := range owners {
		fns = append(fns, func() error {
			defer func() { done.Store(running.Add(-1) == 0) }()
			s, rng := r.session(x), rand.New(rand.NewPCG(uint64(i), 4))
			for range scaled(20_000) {
				if err := claim(s, rng, i+1, holds[:], &owned); err != nil {
					return err
				}
			}
			return nil
		})
	}
	parallel(t, fns...)
	t.Logf("%d checkpoints", r.number)
}

var errTaken = errors.New("the key is taken")

type checkFunc func(other rowid.ID) error

func (f checkFunc) Check(other rowid.ID) error { return f(other) }

// claim tries to own a key for a moment.
func claim(s *session, rng *rand.Rand, n int, holds []atomic.Int32, owned *claims) error {
	k := rng.IntN(len(owned))
	holds[n].Store(int32(k + 1))
	defer holds[n].Store(0)
	err := s.tryInsert(string([]byte{byte(k)}), n, checkFunc(func(other rowid.ID) error {
		if holds[other.Ordinal()].Load() == int32(k+1) {
			return errTaken
		}
		return nil
	}))
	switch {
	case err == errTaken:
		return nil
	case err != nil:
		return err
	case !owned[k].CompareAndSwap(0, uint64(n)):
		return fmt.Errorf("key %d has the owners %d and %d", k, owned[k].Load(), n)
	}
	defer owned[k].Store(0)
	runtime.Gosched()
	rows, err := s.tryLookup(string([]byte{byte(k)}))
	if err == nil && !slices.Contains(rows, row(n)) {
		err = fmt.Errorf("the owner %d of key %d has no entry: %v", n, k, rows)
	}
	return err
}
