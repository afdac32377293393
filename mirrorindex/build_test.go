package mirrorindex

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTable rowid.Table = 5

func row(n int) rowid.ID { return rowid.Make(testTable, uint64(n)) }

// rig is a database around the indexes of a test.
type rig struct {
	t      testing.TB
	fs     *vfs.Mem
	spec   index.Spec
	number uint64
}

func newRig(t testing.TB, limit int64) *rig {
	a := arena.New(arena.Config{Limit: limit})
	d := epoch.NewDomain(a)
	t.Cleanup(func() {
		d.Close()
		require.Zero(t, a.Stats().InUse, "memory is left over")
		require.NoError(t, a.Close())
	})
	fs := vfs.NewMem()
	return &rig{t: t, fs: fs, spec: index.Spec{
		Table: testTable, Number: 1, Name: "items.by_name", DatabaseID: [16]byte{7},
		Arena: a, Domain: d, FS: fs, Logger: slog.New(slog.DiscardHandler),
	}}
}

func (r *rig) adopt(x index.Index, err error) *Index {
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, x.Close()) })
	return x.(*Index)
}

func (r *rig) create() *Index { return r.adopt(Strategy{}.Create(r.spec)) }

func (r *rig) open(files []index.FileInfo) *Index {
	return r.adopt(Strategy{}.Open(context.Background(), r.spec, files))
}

func (r *rig) checkpoint(x *Index) []index.FileInfo {
	r.number++
	c, err := x.BeginCheckpoint(context.Background(), r.number)
	require.NoError(r.t, err)
	files, err := c.Write(context.Background(), func(ext string) (vfs.File, error) {
		return r.fs.Create(fmt.Sprintf("/%d.%s", r.number, ext))
	})
	require.NoError(r.t, err)
	c.Published()
	return files
}

// filled returns the files of an index with n keys.
func (r *rig) filled(n int) []index.FileInfo { return r.filledWith(n, numbered) }

func (r *rig) filledWith(n int, key func(int) string) []index.FileInfo {
	x := r.create()
	s := r.session(x)
	for i := range n {
		require.NoError(r.t, s.insert(key(i), 1))
	}
	return r.checkpoint(x)
}

func numbered(i int) string { return fmt.Sprintf("key %07d", i) }

func ready(x *Index) func() bool { return func() bool { return x.Progress().Ready } }

func (r *rig) await(x *Index) {
	require.Eventually(r.t, ready(x), 20*time.Second, time.Millisecond)
}

// session is one goroutine's access to an index.
type session struct {
	x *Index
	h *epoch.Handle
}

func (r *rig) session(x *Index) *session { return &session{x, r.spec.Domain.Register()} }

func (s *session) insert(key string, n int) error {
	s.h.Pin()
	defer s.h.Unpin()
	return s.x.Insert(s.h, []byte(key), row(n), nil)
}

func (s *session) remove(key string, n int) (bool, error) {
	s.h.Pin()
	defer s.h.Unpin()
	return s.x.Remove(s.h, []byte(key), row(n), func() bool { return true })
}

func (s *session) lookup(key string) ([]rowid.ID, error) {
	s.h.Pin()
	defer s.h.Unpin()
	return s.x.Lookup(s.h, []byte(key), nil)
}

// count goes through the index, in order, and counts the entries of a row.
func (s *session) count(n int) (entries int, err error) {
	var c index.Cursor
	var b index.Batch
	last := ""
	for more := true; more; {
		s.h.Pin()
		more, err = s.x.Scan(s.h, index.Range{}, &c, &b)
		s.h.Unpin()
		if err != nil {
			return 0, err
		}
		for i := range b.Len() {
			if key := string(b.Key(i)); key < last {
				return 0, fmt.Errorf("%q behind %q", key, last)
			} else {
				last = key
			}
			if b.Row(i) == row(n) {
				entries++
			}
		}
	}
	return entries, nil
}

// The chain serves from the first moment, the mirror takes over, and both have
// everything that was entered before, meanwhile and after.
func TestMirrorTakesOver(t *testing.T) {
	r := newRig(t, 0)
	const n = 20_000
	x := r.open(r.filled(n))
	s := r.session(x)
	rows, err := s.lookup(numbered(7))
	require.NoError(t, err)
	require.Equal(t, []rowid.ID{row(1)}, rows)
	for i := range 500 {
		require.NoError(t, s.insert(numbered(i*3), 2))
		removed, err := s.remove(numbered(i*5), 1)
		require.NoError(t, err)
		require.True(t, removed)
	}
	r.await(x)
	p := x.Progress()
	require.Equal(t, p.Total, p.Done)
	require.InDelta(t, n, p.Total, 1000)
	for i := range 500 {
		require.NoError(t, s.insert(numbered(i*5), 3))
	}
	check := func(x *Index) {
		s := r.session(x)
		for n, want := range map[int]int{1: n - 500, 2: 500, 3: 500} {
			got, err := s.count(n)
			require.NoError(t, err)
			require.Equal(t, want, got, "row %d", n)
		}
		require.EqualValues(t, n+500, x.Stats().Entries)
	}
	check(x)
	again := r.open(r.checkpoint(x))
	r.await(again)
	check(again)
}

// Writers and readers go on throughout. A writer knows what is its own.
func TestBuildUnderLoad(t *testing.T) {
	rounds, keys := 15, 3000
	if invariants.Enabled {
		rounds = 4
	}
	r := newRig(t, 0)
	files := r.filled(keys)
	for round := range rounds {
		x := r.open(files)
		var stop atomic.Bool
		errs := make(chan error, 3)
		for w := range 3 {
			go func() { errs <- work(r.session(x), keys, 10+w, &stop) }()
		}
		if round%2 == 0 {
			r.checkpoint(x)
		}
		r.await(x)
		if round%3 == 0 {
			r.checkpoint(x)
		}
		stop.Store(true)
		require.NoError(t, errors.Join(<-errs, <-errs, <-errs))
		n, err := r.session(x).count(1)
		require.NoError(t, err)
		require.Equal(t, keys, n)
		same(t, r, x)
		r.spec.Domain.Reclaim()
	}
}

// work enters and removes one row under random keys until it is to stop.
func work(s *session, keys, n int, stop *atomic.Bool) error {
	rng := rand.New(rand.NewPCG(uint64(n), rand.Uint64()))
	mine := map[string]bool{}
	for i := 0; !stop.Load() || i < 1000; i++ {
		key := numbered(rng.IntN(keys))
		switch rng.IntN(3) {
		case 0:
			mine[key] = true
			if err := s.insert(key, n); err != nil {
				return err
			}
		case 1:
			removed, err := s.remove(key, n)
			if err == nil && removed != mine[key] {
				err = fmt.Errorf("%s: removed %v, present %v", key, removed, mine[key])
			}
			if err != nil {
				return err
			}
			delete(mine, key)
		default:
			rows, err := s.lookup(key)
			if err == nil && slices.Contains(rows, row(n)) != mine[key] {
				err = fmt.Errorf("%s: %v, present %v", key, rows, mine[key])
			}
			if err != nil {
				return err
			}
		}
	}
	got, err := s.count(n)
	if err == nil && got != len(mine) {
		err = fmt.Errorf("scan finds %d of %d", got, len(mine))
	}
	return err
}

// same compares the mirror with what the chain alone says.
func same(t *testing.T, r *rig, x *Index) {
	require.NotNil(t, x.mirror.Load())
	alone := &Index{spec: x.spec, chain: x.chain}
	for n := range 13 {
		want, err := r.session(alone).count(n)
		require.NoError(t, err)
		got, err := r.session(x).count(n)
		require.NoError(t, err)
		require.Equal(t, want, got, "row %d", n)
	}
}

// The building waits for the end of the recovery, and Close for neither.
func TestBuildAfterRecovery(t *testing.T) {
	r := newRig(t, 0)
	files := r.filled(3000)
	recovered := make(chan struct{})
	r.spec.Recovered = recovered
	x := r.open(files)
	inUse := r.spec.Arena.Stats().InUse
	require.Never(t, ready(x), 20*time.Millisecond, time.Millisecond)
	require.Equal(t, inUse, r.spec.Arena.Stats().InUse)
	close(recovered)
	r.await(x)
	r.spec.Recovered = make(chan struct{})
	y, err := Strategy{}.Open(context.Background(), r.spec, files)
	require.NoError(t, err)
	require.NoError(t, y.Close())
}

// Close ends a building at any time.
func TestCloseWhileBuilding(t *testing.T) {
	r := newRig(t, 0)
	files := r.filled(5000)
	for i := range 50 {
		x, err := Strategy{}.Open(context.Background(), r.spec, files)
		require.NoError(t, err)
		s := r.session(x.(*Index))
		require.NoError(t, s.insert("key", 1))
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		require.NoError(t, x.Close())
		r.spec.Domain.Reclaim()
	}
}

// A mirror that memory does not suffice for is done without.
func TestNoMemoryForTheMirror(t *testing.T) {
	big, small := newRig(t, 0), newRig(t, 4<<20)
	const n = 30_000
	long := func(i int) string { return numbered(i) + strings.Repeat(fmt.Sprint(i), 40) }
	files := big.filledWith(n, long)
	small.spec.FS = big.fs
	given := newNotice(&small.spec)
	x := small.open(files)
	require.Eventually(t, given, 20*time.Second, time.Millisecond)
	require.False(t, x.Progress().Ready)
	s := small.session(x)
	require.NoError(t, s.insert("key", 1))
	rows, err := s.lookup(long(1234))
	require.NoError(t, err)
	require.Len(t, rows, 1)
	got, err := s.count(1)
	require.NoError(t, err)
	require.Equal(t, n+1, got)
}

// So is one whose files are damaged.
func TestDamageWhileBuilding(t *testing.T) {
	r := newRig(t, 0)
	files := r.filled(2000)
	f, err := r.fs.Open(files[0].Name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{1, 2, 3}, 5000)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	given := newNotice(&r.spec)
	x := r.open(files)
	require.Eventually(t, given, 20*time.Second, time.Millisecond)
	require.False(t, x.Progress().Ready)
}

// notice is a log handler that looks for the message that there is no mirror.
type notice struct{ given *atomic.Bool }

// newNotice has the index watched.
func newNotice(spec *index.Spec) (given func() bool) {
	n := notice{new(atomic.Bool)}
	spec.Logger = slog.New(n)
	return n.given.Load
}

func (n notice) Enabled(context.Context, slog.Level) bool { return true }
func (n notice) WithAttrs([]slog.Attr) slog.Handler       { return n }
func (n notice) WithGroup(string) slog.Handler            { return n }
func (n notice) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "without a mirror") {
		n.given.Store(true)
	}
	return nil
}

// Memory is about twice that of one tree.
func TestMemory(t *testing.T) {
	const n = 10_000
	r := newRig(t, 0)
	x := r.create()
	s := r.session(x)
	for i := range n {
		require.NoError(t, s.insert(numbered(i), 1))
	}
	one := x.mirror.Load().Stats().Bytes
	require.LessOrEqual(t, x.Stats().Bytes, one*21/10)
	r.checkpoint(x)
	require.LessOrEqual(t, x.Stats().Bytes, one*11/10, "the chain's part is in files")
	require.Positive(t, x.Stats().Mapped)
}
