package rekindle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var (
	budgetData   = flag.Int64("budget.data", 0, "bytes of rows for TestDataBeyondBudget, which is skipped without")
	budgetMemory = flag.Int64("budget.memory", 64<<20, "memory budget of TestDataBeyondBudget in bytes")
	budgetRow    = flag.Int64("budget.row", 500, "bytes of a row of TestDataBeyondBudget")
	budgetTime   = flag.Duration("budget.time", 5*time.Second, "how long TestDataBeyondBudget does one kind of work")
)

type blob struct {
	ID   int64 `rekindle:",pk"`
	Data []byte
}

// TestDataBeyondBudget works on many times more data than it has memory for, and
// looks at what the system says about this process. It is to be run alone:
//
//	go test -run DataBeyondBudget -v -budget.data 5000000000 -budget.memory 536870912 .
func TestDataBeyondBudget(t *testing.T) {
	if *budgetData == 0 {
		t.Skip("takes -budget.data bytes of disk")
	}
	w := &beyond{t: t, dir: t.TempDir(), rows: *budgetData / *budgetRow}
	fixed := int64(0) // of the Go runtime, the log's buffers and the test
	if *budgetMemory < 256<<20 {
		fixed = 24 << 20
	}
	stop := w.watch()
	w.open()
	w.load()
	w.work("random reads", w.rows, w.read)
	w.work("reads of 2 %", w.rows/50, w.read)
	w.work("random updates", w.rows, w.update)
	require.NoError(t, w.db.Close(t.Context()))
	start := time.Now()
	w.open()
	opened := time.Since(start)
	require.NoError(t, w.read(0))
	t.Logf("opened in %v, first read after %v", opened, time.Since(start))
	w.work("random reads", w.rows, w.read)
	require.NoError(t, w.db.Close(t.Context()))
	if most := stop(); most > 0 { // the system can tell
		require.Less(t, most, *budgetMemory*13/10+fixed)
	}
}

// beyond is a database with more rows than memory.
type beyond struct {
	t     *testing.T
	dir   string
	rows  int64
	db    *rekindle.DB
	blobs *rekindle.Table[blob]
}

func (w *beyond) open() {
	var err error
	o := rekindle.Options{MemoryBudget: *budgetMemory, Durability: rekindle.None}
	w.db, err = rekindle.Open(w.t.Context(), w.dir, &o)
	require.NoError(w.t, err)
	w.blobs, err = rekindle.OpenTable[blob](w.t.Context(), w.db, "blobs")
	require.NoError(w.t, err)
}

func blobData(id int64, b []byte) {
	for i := range b {
		b[i] = byte(id >> (i % 8 * 8))
	}
}

func (w *beyond) load() {
	const batch = 100
	start := time.Now()
	w.each(func(worker, workers int64) error {
		row := blob{Data: make([]byte, *budgetRow)}
		for first := batch * worker; first < w.rows; first += batch * workers {
			err := w.db.Update(w.t.Context(), func(tx *rekindle.Tx) error {
				for row.ID = first; row.ID < min(first+batch, w.rows); row.ID++ {
					blobData(row.ID, row.Data)
					if err := w.blobs.Insert(tx, &row); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.log("load", w.rows, time.Since(start))
}

// each runs f on some goroutines.
func (w *beyond) each(f func(worker, workers int64) error) {
	const workers = 2
	var group sync.WaitGroup
	for worker := range int64(workers) {
		group.Go(func() {
			if err := f(worker, workers); err != nil {
				w.t.Error(err)
			}
		})
	}
	group.Wait()
}

// work runs f for random rows below a bound.
func (w *beyond) work(name string, below int64, f func(id int64) error) {
	var mu sync.Mutex
	total, start := int64(0), time.Now()
	w.each(func(worker, _ int64) error {
		rng := rand.New(rand.NewPCG(uint64(worker), 1))
		n := int64(0)
		for ; time.Since(start) < *budgetTime; n++ {
			if err := f(rng.Int64N(below)); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		total += n
		return nil
	})
	w.log(name, total, time.Since(start))
}

func (w *beyond) log(name string, done int64, took time.Duration) {
	s := w.db.Stats()
	w.t.Logf("%-15s %8.0f/s; arena %d MB, %d in use, %d of them array, %d index; Go %d MB, heap %d; %d frozen, %d online, %d cold reads; %s",
		name, float64(done)/took.Seconds(), s.ArenaReserved>>20, s.ArenaInUse>>20, s.ArrayBytes>>20, s.IndexBytes>>20, s.GoReserved>>20, s.GoHeap>>20,
		s.RowsFrozen, s.RowsOnline, s.ColdReads, resident())
}

func (w *beyond) read(id int64) error {
	return w.db.View(w.t.Context(), func(tx *rekindle.Tx) error {
		row := blob{ID: id}
		if err := w.blobs.Get(tx, &row); err != nil {
			return err
		}
		if int64(len(row.Data)) != *budgetRow || row.Data[0] != byte(id) || row.Data[1] != byte(id>>8) {
			return fmt.Errorf("row %d has the data of another one", id)
		}
		return nil
	})
}

func (w *beyond) update(id int64) error {
	return w.db.Update(w.t.Context(), func(tx *rekindle.Tx) error {
		row := blob{ID: id, Data: make([]byte, *budgetRow)}
		blobData(id, row.Data)
		return w.blobs.Update(tx, &row)
	})
}

// watch samples the memory of this process; the function returned ends that and
// returns the most there was.
func (w *beyond) watch() func() int64 {
	end, most := make(chan struct{}), make(chan int64)
	go func() {
		peak := int64(0)
		for {
			select {
			case <-end:
				most <- peak
				return
			case <-time.After(20 * time.Millisecond):
				peak = max(peak, statusBytes("VmRSS"))
			}
		}
	}()
	return func() int64 {
		close(end)
		peak := <-most
		w.t.Logf("at most %d MB resident", peak>>20)
		return peak
	}
}

func resident() string {
	return fmt.Sprintf("resident %d MB, %d of them files", statusBytes("VmRSS")>>20, statusBytes("RssFile")>>20)
}

// statusBytes reads a figure of this process, 0 where the system has none.
func statusBytes(name string) (kib int64) {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			_, _ = fmt.Sscan(value, &kib)
		}
	}
	return kib << 10
}
