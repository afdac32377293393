package rekindle_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

type seat struct {
	ID   int64  `rekindle:",pk"`
	Name string `rekindle:",unique"`
	Hall *int32 `rekindle:",unique=place:1"`
	Row  int32  `rekindle:",unique=place:2"`
}

// crowd fights for few unique keys with transactions that go on after a
// statement was refused.
type crowd struct {
	db      *rekindle.DB
	seats   *rekindle.Table[seat]
	stop    atomic.Bool
	commits atomic.Int64
	refused atomic.Int64
}

const crowdSeats = 25

// TestUniqueKeysFoughtFor: a statement may fail when its version already stands
// in the row, over an earlier version of the same transaction. What that one has
// taken must stay taken meanwhile, and all that the failed one left must go.
func TestUniqueKeysFoughtFor(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			o := rekindle.Options{CheckpointBytes: -1, IndexStrategy: strategy, Durability: rekindle.None}
			db, err := rekindle.Open(t.Context(), "/hall", o.OnFS(vfs.NewMem()))
			require.NoError(t, err)
			seats, err := rekindle.OpenTable[seat](t.Context(), db, "seats")
			require.NoError(t, err)
			before, err := db.ScanEntries()
			require.NoError(t, err)
			c := &crowd{db: db, seats: seats}
			c.run(t, time.Second)
			t.Logf("%d commits, %d statements refused", c.commits.Load(), c.refused.Load())
			require.Positive(t, c.refused.Load())
			c.check(t, before)
		})
	}
}

// check closes the database when its indexes are what they should be; others
// is how many entries they have that are not of seats.
func (c *crowd) check(t *testing.T, others int64) {
	_, err := c.db.CrossCheck(t.Context())
	require.NoError(t, err)
	want := others + 3*c.count(t)
	require.Eventually(t, func() bool {
		entries, err := c.db.ScanEntries()
		return err == nil && entries == want
	}, 10*time.Second, time.Millisecond, "entries of keys that no row has stay behind")
	require.NoError(t, c.db.Close(t.Context()))
}

func (c *crowd) run(t *testing.T, d time.Duration) {
	var all sync.WaitGroup
	for i := range uint64(6) {
		rng := rand.New(rand.NewPCG(i, 11))
		all.Go(func() {
			for !c.stop.Load() {
				if err := c.change(t, rng); err != nil {
					t.Error(err)
					c.stop.Store(true)
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for !c.stop.Load() {
				if err := c.look(t); err != nil {
					t.Error(err)
					c.stop.Store(true)
				}
			}
		})
	}
	time.Sleep(d)
	c.stop.Store(true)
	all.Wait()
}

// change is a transaction of a few statements, which often ends in a rollback.
func (c *crowd) change(t *testing.T, rng *rand.Rand) error {
	tx, err := c.db.Begin(t.Context(), true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for range 1 + rng.IntN(4) {
		err := c.statement(tx, rng)
		switch {
		case errors.Is(err, rekindle.ErrConflict) || errors.Is(err, rekindle.ErrIndexDamaged):
			return nil
		case errors.Is(err, rekindle.ErrDuplicateKey):
			c.refused.Add(1)
		case err != nil && !errors.Is(err, rekindle.ErrNotFound):
			return err
		}
	}
	if rng.IntN(4) == 0 {
		return nil
	}
	c.commits.Add(1)
	return tx.Commit(t.Context())
}

func (c *crowd) statement(tx *rekindle.Tx, rng *rand.Rand) error {
	s := seat{ID: rng.Int64N(crowdSeats), Name: fmt.Sprint(rng.IntN(20)), Row: rng.Int32N(4)}
	if rng.IntN(4) > 0 {
		hall := rng.Int32N(4)
		s.Hall = &hall
	}
	switch rng.IntN(4) {
	case 0:
		return c.seats.Delete(tx, &s)
	case 1:
		return c.seats.Insert(tx, &s)
	case 2:
		return c.seats.Update(tx, &s)
	}
	return c.seats.Upsert(tx, &s)
}

// look makes sure that no two seats of a snapshot have a key in common.
func (c *crowd) look(t *testing.T) error {
	return c.db.View(t.Context(), func(tx *rekindle.Tx) error {
		taken := map[string]int64{}
		for s, err := range c.seats.Scan(tx, rekindle.Query{To: rekindle.Key(int64(crowdSeats))}) {
			if errors.Is(err, rekindle.ErrIndexDamaged) {
				return nil
			}
			if err != nil {
				return err
			}
			keys := []string{fmt.Sprint("id ", s.ID), fmt.Sprint("name ", s.Name)}
			if s.Hall != nil {
				keys = append(keys, fmt.Sprint("place ", *s.Hall, s.Row))
			}
			for _, key := range keys {
				if other, is := taken[key]; is {
					return fmt.Errorf("seats %d and %d both have %s", other, s.ID, key)
				}
				taken[key] = s.ID
			}
		}
		return nil
	})
}

func (c *crowd) count(t *testing.T) (n int64) {
	require.NoError(t, c.db.View(t.Context(), func(tx *rekindle.Tx) error {
		for _, err := range c.seats.All(tx) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	}))
	return n
}

// TestRepairUnderLoad rebuilds every index while transactions change its rows.
func TestRepairUnderLoad(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		if strategy == "rebuild" {
			continue // has no files
		}
		t.Run(strategy, func(t *testing.T) {
			disk := vfs.NewMem()
			o := rekindle.Options{CheckpointBytes: -1, IndexStrategy: strategy, Durability: rekindle.None}
			db, err := rekindle.Open(t.Context(), "/hall", o.OnFS(disk))
			require.NoError(t, err)
			seats, err := rekindle.OpenTable[seat](t.Context(), db, "seats")
			require.NoError(t, err)
			others, err := db.ScanEntries()
			require.NoError(t, err)
			update(t, db, func(tx *rekindle.Tx) {
				for i := range int64(20_000) {
					require.NoError(t, seats.Insert(tx, &seat{ID: crowdSeats + i, Name: fmt.Sprint("empty ", i)}))
				}
			})
			require.NoError(t, db.Close(t.Context()))

			for _, name := range indexFiles(disk) {
				if strings.Contains(name, "/index-1-") {
					alter(t, disk, name, spoilNodes)
				}
			}
			db, err = rekindle.Open(t.Context(), "/hall", o.OnFS(disk))
			require.NoError(t, err)
			require.Empty(t, db.RecoveryReport().Fallbacks)
			seats, err = rekindle.OpenTable[seat](t.Context(), db, "seats")
			require.NoError(t, err)
			c := &crowd{db: db, seats: seats}
			c.run(t, time.Second)
			require.Eventually(t, func() bool { return c.readAll(t) == nil }, 10*time.Second, time.Millisecond)
			require.Eventually(t, func() bool { return db.Stats().IndexRepairs == 3 }, 10*time.Second, time.Millisecond)
			require.NoError(t, db.Checkpoint(t.Context()))
			c.check(t, others)
		})
	}
}

// readAll reads through every index and returns the damage that it meets.
func (c *crowd) readAll(t *testing.T) (damage error) {
	require.NoError(t, c.db.View(t.Context(), func(tx *rekindle.Tx) error {
		for _, name := range []string{"", "name", "place"} {
			for _, err := range c.seats.Scan(tx, rekindle.Query{Index: name}) {
				if err != nil {
					require.ErrorIs(t, err, rekindle.ErrIndexDamaged)
					damage = err
				}
			}
		}
		return nil
	}))
	return damage
}

// spoilNodes flips a bit in every kilobyte between the two ends of a file: these
// are nodes.
func spoilNodes(b []byte) []byte {
	for at := 4096; at < len(b)*7/8; at += 1024 {
		b[at] ^= 1
	}
	return b
}
