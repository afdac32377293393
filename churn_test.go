package rekindle_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var (
	churnTime       = flag.Duration("churn.time", 1500*time.Millisecond, "how long TestChurn works in each case")
	churnRows       = flag.Int64("churn.rows", 2000, "rows of TestChurn")
	churnSegment    = flag.Int64("churn.segment", 64<<10, "bytes of a log segment in TestChurn")
	churnCheckpoint = flag.Int64("churn.checkpoint", 512<<10, "bytes of log between two checkpoints in TestChurn")
	churnStill      = flag.Bool("churn.uncompacted", false, "TestChurn without compaction, to compare throughput and latency")
)

// parcel is a row whose content vouches for itself.
type parcel struct {
	ID      int64 `rekindle:",pk"`
	Version int64 `rekindle:",index"`
	Body    []byte
}

const parcelBytes = 200

func makeParcel(id, version int64) *parcel {
	body := make([]byte, parcelBytes)
	rng := rand.New(rand.NewPCG(uint64(id), uint64(version)))
	for at := 0; at < len(body); at += 8 {
		binary.LittleEndian.PutUint64(body[at:], rng.Uint64())
	}
	return &parcel{id, version, body}
}

// TestChurn changes rows from all sides while readers with overlapping snapshots
// look on, in one case one of them all the time. The log never takes more than its
// bound and every row is always whole. At length, as for the bound of 256 MiB:
//
//	go test -run TestChurn -churn.time 5m -churn.rows 200000 -churn.segment 4194304 -churn.checkpoint 16777216 -timeout 30m
func TestChurn(t *testing.T) {
	for name, oldReader := range map[string]bool{"overlapping readers": false, "and one old reader": true} {
		t.Run(name, func(t *testing.T) {
			c := openChurn(t)
			if oldReader {
				tx, err := c.db.Begin(t.Context(), false)
				require.NoError(t, err)
				defer func() { require.NoError(t, tx.Rollback()) }()
			}
			c.run()
			stats := c.db.Stats()
			t.Logf("%d tx/s, p50 %v, p99 %v; log at most %d of %d bytes; %d rows compacted, %d bytes, %d segments freed",
				len(c.latencies)*int(time.Second)/int(*churnTime), c.latency(50), c.latency(99), c.most.Load(), c.bound(),
				stats.CompactedRows, stats.CompactedBytes, stats.FreedSegments)
			if !*churnStill {
				require.LessOrEqual(t, c.most.Load(), c.bound())
			}
			_, err := c.db.CrossCheck(t.Context())
			require.NoError(t, err)
		})
	}
}

type parcelService struct {
	t       *testing.T
	db      *rekindle.DB
	parcels *rekindle.Table[parcel]
	stop    atomic.Bool
	most    atomic.Int64 // bytes of log

	mu        sync.Mutex
	latencies []time.Duration
}

func openChurn(t *testing.T) *parcelService {
	o := rekindle.Options{SegmentBytes: *churnSegment, CheckpointBytes: *churnCheckpoint}
	if *churnStill {
		o = o.Uncompacted()
	}
	db, err := rekindle.Open(t.Context(), t.TempDir(), &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.Background())) })
	parcels, err := rekindle.OpenTable[parcel](t.Context(), db, "parcels")
	require.NoError(t, err)
	c := &parcelService{t: t, db: db, parcels: parcels}
	for first := int64(0); first < *churnRows; first += 1000 {
		update(t, db, func(tx *rekindle.Tx) {
			for id := first; id < min(first+1000, *churnRows); id++ {
				require.NoError(t, parcels.Insert(tx, makeParcel(id, 0)))
			}
		})
	}
	return c
}

// bound is the stated one: twice the live bytes, some segments, and the log since
// the checkpoint before the last one, rounds being filled up to whole sectors.
func (c *parcelService) bound() int64 {
	const record = 24 + parcelBytes + 40
	return 2*record**churnRows + 6**churnCheckpoint + 6**churnSegment
}

func (c *parcelService) run() {
	var group sync.WaitGroup
	for i := range uint64(8) {
		group.Go(func() { c.until(i, c.write) })
		group.Go(func() { c.until(100+i, c.read) })
	}
	for end := time.Now().Add(*churnTime); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c.most.Store(max(c.most.Load(), c.db.Stats().LogBytes))
	}
	c.stop.Store(true)
	group.Wait()
}

func (c *parcelService) until(seed uint64, step func(*rand.Rand) error) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for !c.stop.Load() {
		if err := step(rng); err != nil {
			c.t.Error(err)
			return
		}
	}
}

// write replaces a row, a hot one every other time, or takes one away for a moment.
func (c *parcelService) write(rng *rand.Rand) error {
	id := rng.Int64N(*churnRows)
	if rng.IntN(2) == 0 {
		id %= max(1, *churnRows/50)
	}
	remove, version := rng.IntN(10) == 0, rng.Int64()
	begin := time.Now()
	err := c.db.Update(c.t.Context(), func(tx *rekindle.Tx) error {
		if !remove {
			return c.parcels.Upsert(tx, makeParcel(id, version))
		}
		err := c.parcels.Delete(tx, &parcel{ID: id})
		if errors.Is(err, rekindle.ErrNotFound) {
			return nil
		}
		return err
	})
	c.mu.Lock()
	c.latencies = append(c.latencies, time.Since(begin))
	c.mu.Unlock()
	return err
}

// read looks at some rows for a while: within one snapshot they do not change.
func (c *parcelService) read(rng *rand.Rand) error {
	return c.db.View(c.t.Context(), func(tx *rekindle.Tx) error {
		first := make([]int64, 20)
		base := rng.Int64N(*churnRows)
		for pass := range 3 {
			for i := range first {
				row := parcel{ID: (base + int64(i)) % *churnRows}
				err := c.parcels.Get(tx, &row)
				if errors.Is(err, rekindle.ErrNotFound) {
					row.Version, err = -1, nil
				} else if err == nil && !slices.Equal(row.Body, makeParcel(row.ID, row.Version).Body) {
					c.t.Errorf("row %d is torn", row.ID)
				}
				if err != nil {
					return err
				}
				if pass == 0 {
					first[i] = row.Version
				} else if first[i] != row.Version {
					c.t.Errorf("row %d changed within a snapshot", row.ID)
				}
			}
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
		return nil
	})
}

func (c *parcelService) latency(percent int) time.Duration {
	if len(c.latencies) == 0 {
		return 0
	}
	slices.Sort(c.latencies)
	return c.latencies[(len(c.latencies)-1)*percent/100]
}
