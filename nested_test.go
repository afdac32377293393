package rekindle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// within fails the test if f takes longer than anything but a deadlock would.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s does not end:\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
}

// TestNested: transactions within transactions of the same goroutine, with every
// other call in the middle, never wait for each other while everything grows: the
// log, memory up to the budget and the limit, sessions, tables.
func TestNested(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			for _, o := range []rekindle.Options{
				{},
				{MemoryBudget: 1},
				{MemoryBudget: 1 << 20, MemoryLimit: 4 << 20, LogStreams: 2},
				{MemoryLimit: 6 << 20, Durability: rekindle.None},
				rekindle.Options{CheckpointBytes: -1}.Eager(),
			} {
				o.IndexStrategy, o.SegmentBytes = strategy, 64<<10
				if o.CheckpointBytes == 0 {
					o.CheckpointBytes = 32 << 10
				}
				n := &nest{handles: openHandles(t, vfs.NewMem(), "/db", o), t: t}
				within(t, fmt.Sprintf("nest with %+v", o), func() {
					for round := range 12 {
						n.enter(5, round)
					}
				})
				within(t, "close", func() { require.NoError(t, n.db.Close(t.Context())) })
			}
		})
	}
}

// nest opens transactions inside of each other.
type nest struct {
	*handles
	t    *testing.T
	next int64
}

// enter goes down to a depth, by View and Update in turn, and does everything at
// every level.
func (n *nest) enter(levels, round int) {
	if levels == 0 {
		return
	}
	run := n.db.View
	if (levels+round)%2 == 0 {
		run = n.db.Update
	}
	err := run(n.ctx, func(tx *rekindle.Tx) error {
		if err := n.write(tx); err != nil {
			return err
		}
		n.calls(levels)
		for _, err := range n.items.Scan(tx, rekindle.Query{Limit: 3}) {
			if err != nil {
				return err
			}
			n.enter(levels-1, round)
			return n.write(tx)
		}
		n.enter(levels-1, round)
		return n.write(tx)
	})
	if err != nil && !errors.Is(err, rekindle.ErrTxReadOnly) && !errors.Is(err, rekindle.ErrMemoryLimit) {
		n.t.Errorf("level %d: %v", levels, err)
	}
}

// write adds rows; a reader leaves that alone.
func (n *nest) write(tx *rekindle.Tx) error {
	text := strings.Repeat("x", 500)
	for range 20 {
		n.next++
		err := n.items.Insert(tx, &item{ID: n.next, Name: fmt.Sprint(n.next), Group: int32(n.next % 3), Note: &text})
		if errors.Is(err, rekindle.ErrTxReadOnly) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// calls makes the calls that wait for something.
func (n *nest) calls(level int) {
	for name, err := range map[string]error{
		"checkpoint": n.db.Checkpoint(n.ctx),
		"compact":    n.db.Compact(n.ctx),
		"check":      func() error { _, err := n.db.CrossCheck(n.ctx); return err }(),
		"table": func() error {
			_, err := rekindle.OpenTable[item](n.ctx, n.db, fmt.Sprint("items of level ", level))
			return err
		}(),
	} {
		if err != nil && !errors.Is(err, rekindle.ErrMemoryLimit) {
			n.t.Errorf("%s: %v", name, err)
		}
	}
	n.db.Stats()
}

// TestCloseInATransaction: it ends the transaction that it is called in.
func TestCloseInATransaction(t *testing.T) {
	for _, in := range []string{"View", "Update", "Visit"} {
		h := openHandles(t, vfs.NewMem(), "/db", rekindle.Options{})
		require.NoError(t, h.db.Update(h.ctx, func(tx *rekindle.Tx) error { return h.items.Insert(tx, h.item()) }))
		within(t, in, func() {
			shut := func(tx *rekindle.Tx) error {
				ctx, cancel := context.WithTimeout(h.ctx, 10*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, h.db.Close(ctx), rekindle.ErrOpenTransactions)
				return h.items.Get(tx, h.item())
			}
			run := map[string]func() error{
				"View":   func() error { return h.db.View(h.ctx, shut) },
				"Update": func() error { return h.db.Update(h.ctx, shut) },
				"Visit": func() error {
					return h.db.View(h.ctx, func(tx *rekindle.Tx) error {
						return h.items.Visit(tx, rekindle.Query{}, func(*item) error { return shut(tx) })
					})
				},
			}[in]
			require.ErrorIs(t, run(), rekindle.ErrClosed)
		})
	}
}

// TestFunctionsThatDoNotReturn: a transaction function that panics, or ends its
// goroutine, is rolled back and holds nothing, wherever it was.
func TestFunctionsThatDoNotReturn(t *testing.T) {
	defer goleak.VerifyNone(t)
	h := openHandles(t, vfs.NewMem(), "/db", rekindle.Options{})
	update(t, h.db, func(tx *rekindle.Tx) {
		for h.id = range int64(100) {
			require.NoError(t, h.items.Insert(tx, h.item()))
		}
	})
	want := allItems(t, h.db, h.items)
	inside := map[string]func(tx *rekindle.Tx, leave func()) error{
		"function": func(_ *rekindle.Tx, leave func()) error { leave(); return nil },
		"All": func(tx *rekindle.Tx, leave func()) error {
			for range h.items.All(tx) {
				leave()
			}
			return nil
		},
		"Visit": func(tx *rekindle.Tx, leave func()) error {
			return h.items.Visit(tx, rekindle.Query{Index: "group"}, func(*item) error { leave(); return nil })
		},
		"two scans": func(tx *rekindle.Tx, leave func()) error {
			for range h.rows.Scan(tx, rekindle.Query{Reverse: true}) {
				for range h.items.All(tx) {
					leave()
				}
			}
			return nil
		},
		"nested": func(_ *rekindle.Tx, leave func()) error {
			return h.db.View(h.ctx, func(*rekindle.Tx) error { leave(); return nil })
		},
	}
	for place, f := range inside {
		for how, leave := range map[string]func(){"panic": func() { panic(errStop) }, "exit": runtime.Goexit} {
			for _, run := range []func(context.Context, func(*rekindle.Tx) error) error{h.db.View, h.db.Update} {
				within(t, how+" in "+place, func() {
					defer func() { _ = recover() }()
					err := run(h.ctx, func(tx *rekindle.Tx) error {
						for id := range int64(100) {
							err := h.items.Upsert(tx, &item{ID: 50 + id, Name: fmt.Sprint("new ", id)})
							if err != nil && !errors.Is(err, rekindle.ErrTxReadOnly) {
								return err
							}
						}
						return f(tx, leave)
					})
					t.Errorf("%s in %s returns: %v", how, place, err)
				})
				require.Zero(t, h.db.Stats().OpenTransactions)
				require.Equal(t, want, allItems(t, h.db, h.items))
			}
		}
	}
	_, err := h.db.CrossCheck(h.ctx)
	require.NoError(t, err)
	require.Zero(t, settle(t, h.db).OldVersions)
	require.NoError(t, h.db.Close(h.ctx))
}

// TestCancelledAtEveryOperation ends the context of a call before the n-th
// operation on a file, for every n: the call says so, or succeeds; what it was
// about has happened or not, entirely; and the database goes on, or opens again.
func TestCancelledAtEveryOperation(t *testing.T) {
	calls := map[string]func(h *handles) error{
		"commit": func(h *handles) error {
			return h.db.Update(h.ctx, func(tx *rekindle.Tx) error { return h.items.Insert(tx, h.item()) })
		},
		"large commit": func(h *handles) error {
			text := strings.Repeat("x", 4000)
			return h.db.Update(h.ctx, func(tx *rekindle.Tx) error {
				for id := range int64(60) {
					if err := h.items.Insert(tx, &item{ID: 1000 + id, Name: fmt.Sprint(1000 + id), Note: &text}); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"checkpoint": func(h *handles) error { return h.db.Checkpoint(h.ctx) },
		"compact":    func(h *handles) error { return h.db.Compact(h.ctx) },
		"table":      func(h *handles) error { _, err := rekindle.OpenTable[seat](h.ctx, h.db, "seats"); return err },
		"close":      func(h *handles) error { return h.db.Close(h.ctx) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			disk, want := livedWith(t, rekindle.IndexStrategies()[0])
			tried, ended := 0, 0
			for n := 1; ; n++ {
				fs := disk.CrashClone(nil, vfs.Keep)
				h := openHandles(t, fs, "/db", rekindle.Options{CheckpointBytes: -1}.Eager())
				if name == "compact" {
					leaveDeadSegments(t, h)
				}
				h.id = 500
				reached, err := cancelledAt(h, fs, n, call)
				if err != nil {
					require.True(t, errors.Is(err, context.Canceled), "operation %d: %v", n, err)
					ended++
				}
				after(t, h, want, name, err)
				tried++
				if !reached {
					break
				}
			}
			t.Logf("%d operations, %d calls ended early", tried-1, ended)
		})
	}
}

// leaveDeadSegments fills segments of the log with rows and deletes those.
func leaveDeadSegments(t *testing.T, h *handles) {
	text := strings.Repeat("x", 4000)
	for _, statement := range []func(*rekindle.Tx, *item) error{h.items.Insert, h.items.Delete} {
		update(t, h.db, func(tx *rekindle.Tx) {
			for id := range int64(60) {
				require.NoError(t, statement(tx, &item{ID: 1000 + id, Name: fmt.Sprint(1000 + id), Note: &text}))
			}
		})
		require.NoError(t, h.db.Checkpoint(h.ctx))
	}
}

// cancelledAt makes a call whose context ends before the n-th operation on a file.
func cancelledAt(h *handles, fs *vfs.Mem, n int, call func(*handles) error) (reached bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex
	left := n
	fs.OnOp(func(int, vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			cancel()
		}
		return nil
	})
	h.ctx = ctx
	err = call(h)
	fs.OnOp(nil)
	mu.Lock()
	defer mu.Unlock()
	return left <= 0, err
}

// after checks what a call that may have been ended early has left: the rows from
// before, and those of its own if it says that they are there, or cannot say.
func after(t *testing.T, h *handles, want []item, name string, failure error) {
	h.ctx = context.Background()
	if name == "close" {
		h = openHandles(t, h.fs, "/db", rekindle.Options{CheckpointBytes: -1})
	}
	require.Zero(t, h.db.Stats().OpenTransactions)
	for range 2 { // in this life and in the next one
		got := allItems(t, h.db, h.items)
		require.GreaterOrEqual(t, len(got), len(want))
		require.Equal(t, want, got[:len(want)])
		own := len(got) - len(want)
		switch unknown := errors.Is(failure, rekindle.ErrCommitUnknown); {
		case name == "commit":
			require.True(t, own == 1 && (failure == nil || unknown) || own == 0 && failure != nil && !unknown, "%d rows: %v", own, failure)
		case name == "large commit":
			require.True(t, own == 60 && (failure == nil || unknown) || own == 0 && failure != nil && !unknown, "%d rows: %v", own, failure)
		default:
			require.Zero(t, own)
		}
		_, err := h.db.CrossCheck(h.ctx)
		require.NoError(t, err)
		require.NoError(t, h.db.Checkpoint(h.ctx))
		require.NoError(t, h.db.Close(h.ctx))
		h = openHandles(t, h.fs, "/db", rekindle.Options{CheckpointBytes: -1})
	}
	require.NoError(t, h.db.Close(h.ctx))
}

// TestHandedOut: what was read stays as it was, whatever happens to its row, its
// transaction and its database.
func TestHandedOut(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		o := rekindle.Options{IndexStrategy: strategy, MemoryBudget: 1, CheckpointBytes: -1}
		db, err := rekindle.Open(t.Context(), t.TempDir(), &o) // mapped files and cold rows
		require.NoError(t, err)
		notes, err := rekindle.OpenTable[note](t.Context(), db, "notes")
		require.NoError(t, err)
		rows, err := db.Table("notes")
		require.NoError(t, err)
		fill := func(text string) {
			update(t, db, func(tx *rekindle.Tx) {
				for i := range 100 {
					require.NoError(t, notes.Upsert(tx, &note{fmt.Sprintf("key %03d", i), []byte(text), int8(i), text}))
				}
			})
			require.NoError(t, db.Checkpoint(t.Context()))
			db.FreezeNow()
		}
		fill(strings.Repeat("old", 20))
		var got []note
		require.NoError(t, db.View(t.Context(), func(tx *rekindle.Tx) error {
			for n, err := range notes.All(tx) {
				require.NoError(t, err)
				got = append(got, n)
			}
			one := note{Key: "key 000"}
			require.NoError(t, notes.Get(tx, &one))
			many := []note{{Key: "key 001"}, {Key: "key 002"}}
			_, err := notes.GetMany(tx, many)
			require.NoError(t, err)
			got = append(append(got, one), many...)
			for row, err := range rows.Scan(tx, rekindle.Query{Limit: 5}) {
				require.NoError(t, err)
				got = append(got, note{row[0].(string), row[1].([]byte), int8(row[2].(int8)), row[3].(string)})
			}
			row, err := rows.Get(tx, "key 003")
			got = append(got, note{row[0].(string), row[1].([]byte), row[2].(int8), row[3].(string)})
			return err
		}))
		for range 3 {
			fill(strings.Repeat("new", 20))
		}
		require.NoError(t, db.Close(t.Context()))
		require.Len(t, got, 109)
		for _, n := range got {
			require.Equal(t, strings.Repeat("old", 20), n.Text)
			require.Equal(t, n.Text, string(n.Part))
		}
		got[0].Part[0] = 'x' // it is the caller's
	}
}

// TestTwoDatabases live in one process side by side, and end one after the other.
func TestTwoDatabases(t *testing.T) {
	defer goleak.VerifyNone(t)
	a, b := openHandles(t, vfs.OS(), t.TempDir(), rekindle.Options{}), openHandles(t, vfs.NewMem(), "/db", rekindle.Options{IndexStrategy: "rebuild"})
	var group sync.WaitGroup
	for i, h := range []*handles{a, b} {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 200 {
				update(t, h.db, func(tx *rekindle.Tx) {
					id := rng.Int64N(50)
					require.NoError(t, h.items.Upsert(tx, &item{ID: id, Name: fmt.Sprint(id), Group: int32(i)}))
				})
			}
		})
	}
	group.Wait()
	require.NoError(t, a.db.Close(a.ctx))
	require.EqualValues(t, 201, b.db.Stats().Commits, "and the one that made the table")
	for _, row := range allItems(t, b.db, b.items) {
		require.EqualValues(t, 1, row.Group)
	}
	require.NoError(t, b.db.Close(b.ctx))
}
