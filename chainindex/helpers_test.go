package chainindex

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

const testTable rowid.Table = 5

// rig is a database around the indexes of a test.
type rig struct {
	t      testing.TB
	fs     vfs.FS
	dir    string
	arena  *arena.Arena
	domain *epoch.Domain
	spec   index.Spec
	number uint64 // of the last checkpoint
}

func newRig(t testing.TB) *rig { return newRigOn(t, vfs.OS(), t.TempDir()) }

func newRigOn(t testing.TB, fs vfs.FS, dir string) *rig {
	return newRigIn(t, arena.New(arena.Config{}), fs, dir)
}

func newLimitedRig(t testing.TB, limit int64) *rig {
	return newRigIn(t, arena.New(arena.Config{Limit: limit}), vfs.OS(), t.TempDir())
}

func newRigIn(t testing.TB, a *arena.Arena, fs vfs.FS, dir string) *rig {
	d := epoch.NewDomain(a)
	r := &rig{t: t, fs: fs, dir: dir, arena: a, domain: d, spec: index.Spec{
		Table: testTable, Number: 2, Name: "items.by_name", DatabaseID: [16]byte{0xda, 0x7a, 0xba, 0x05},
		Arena: a, Domain: d, FS: fs, Logger: slog.New(slog.DiscardHandler),
	}}
	t.Cleanup(func() {
		d.Close()
		require.Zero(t, a.Stats().InUse, "memory is left over")
		require.NoError(t, a.Close())
	})
	return r
}

func (r *rig) adopt(x *Index, err error) *Index {
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, x.Close()) })
	return x
}

func (r *rig) create() *Index { return r.adopt(New(r.spec)) }

func (r *rig) open(files []index.FileInfo) *Index {
	return r.adopt(Open(context.Background(), r.spec, files))
}

func (r *rig) path(checkpoint uint64, ext string) string {
	return fmt.Sprintf("%s/%d.%s", r.dir, checkpoint, ext)
}

func (r *rig) begin(x *Index) (index.Capture, func(string) (vfs.File, error)) {
	r.number++
	c, err := x.BeginCheckpoint(context.Background(), r.number)
	require.NoError(r.t, err)
	return c, r.createFile
}

// createFile makes a file of the last checkpoint.
func (r *rig) createFile(ext string) (vfs.File, error) { return r.fs.Create(r.path(r.number, ext)) }

func (r *rig) checkpoint(x *Index) []index.FileInfo {
	c, create := r.begin(x)
	files, err := c.Write(context.Background(), create)
	require.NoError(r.t, err)
	c.Published()
	return files
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is one goroutine's access to an index.
type session struct {
	t testing.TB
	x index.Index
	h *epoch.Handle
}

func (r *rig) session(x index.Index) *session { return &session{r.t, x, r.domain.Register()} }

func row(n int) rowid.ID { return rowid.Make(testTable, uint64(n)) }

func (s *session) tryInsert(key string, n int, unique index.Checker) error {
	s.h.Pin()
	defer s.h.Unpin()
	return s.x.Insert(s.h, []byte(key), row(n), unique)
}

func (s *session) insert(key string, n int) { require.NoError(s.t, s.tryInsert(key, n, nil)) }

func (s *session) remove(key string, n int) bool {
	s.h.Pin()
	defer s.h.Unpin()
	removed, err := s.x.Remove(s.h, []byte(key), row(n), always)
	require.NoError(s.t, err)
	return removed
}

func (s *session) tryLookup(key string) ([]rowid.ID, error) {
	s.h.Pin()
	defer s.h.Unpin()
	return s.x.Lookup(s.h, []byte(key), nil)
}

func (s *session) lookup(key string) []rowid.ID {
	rows, err := s.tryLookup(key)
	require.NoError(s.t, err)
	return rows
}

// fill is one call to Scan.
func (s *session) fill(r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	s.h.Pin()
	defer s.h.Unpin()
	return s.x.Scan(s.h, r, c, b)
}

// tryScan delivers a range in fills of the given size.
func (s *session) tryScan(r index.Range, size int) (all []indextest.Entry, err error) {
	var c index.Cursor
	b := index.Batch{First: size, Max: size}
	for more := true; more; {
		if more, err = s.fill(r, &c, &b); err != nil {
			return all, err
		}
		for i := range b.Len() {
			all = append(all, indextest.Entry{Key: string(b.Key(i)), Row: b.Row(i)})
		}
	}
	return all, nil
}

func (s *session) scan(r index.Range, size int) []indextest.Entry {
	all, err := s.tryScan(r, size)
	require.NoError(s.t, err)
	return all
}

// equals compares all of the index with a model.
func (s *session) equals(m *indextest.Model) {
	for _, r := range []index.Range{{}, {Reverse: true}} {
		want := m.Behind(r, &index.Cursor{})
		require.True(s.t, slices.Equal(want, s.scan(r, 1+rand.IntN(100))), "reverse %v", r.Reverse)
	}
	for _, e := range m.Behind(index.Range{}, &index.Cursor{}) {
		require.Equal(s.t, m.Rows(e.Key), s.lookup(e.Key), "key %x", e.Key)
	}
	s.batchEquals(m)
}

// batchEquals looks up many keys together, some of them absent.
func (s *session) batchEquals(m *indextest.Model) {
	var keys [][]byte
	for i, e := range m.Behind(index.Range{}, &index.Cursor{}) {
		if i%3 == 0 {
			keys = append(keys, []byte(e.Key), []byte(e.Key+" absent"))
		}
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	s.h.Pin()
	rows, ends, err := s.x.(index.BatchLooker).LookupBatch(s.h, keys, []rowid.ID{77}, []int{1})
	s.h.Unpin()
	require.NoError(s.t, err)
	require.Len(s.t, ends, len(keys)+1)
	for i, key := range keys {
		require.True(s.t, slices.Equal(m.Rows(string(key)), rows[ends[i]:ends[i+1]]), "key %x", key)
	}
}

// lagging is a plan that merges where the cap forces it to.
func lagging(_ int64, files []*layer) int { return beyondCap(files) }

// syncBuffer is a buffer that several goroutines use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// scaled is less where all is slow.
func scaled(n int) int {
	if invariants.Enabled {
		return n / 8
	}
	return n
}

// allowAll is a checker.
type allowAll struct{}

func (allowAll) Check(rowid.ID) error { return nil }

// Layers returns how many trees a lookup looks into.
func (x *Index) Layers() int { return len(x.chain.Load().layers) }
