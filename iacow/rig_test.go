package iacow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

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

const testTable rowid.Table = 7

// pair is an entry of an index.
type pair struct {
	key string
	row rowid.ID
}

func comparePairs(a, b pair) int { return index.Compare([]byte(a.key), a.row, []byte(b.key), b.row) }

// rig is an index on a file system in memory, with a model beside it.
type rig struct {
	t      testing.TB
	rnd    *rand.Rand
	fs     *vfs.Mem
	spec   index.Spec
	x      *Index
	h      *epoch.Handle
	model  map[pair]bool
	number uint64       // of the last checkpoint begun
	kept   []checkpoint // the last two published
	shrink bool         // give memory back behind checkpoints, by chance
}

// checkpoint is a published one.
type checkpoint struct {
	files []index.FileInfo
	model map[pair]bool
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("IACOW_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("IACOW_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// effort is a number of operations, fewer of them in slow builds.
func effort(n int) int {
	if invariants.Enabled {
		return n/8 + 1
	}
	return n
}

func newRig(t testing.TB) *rig {
	r := bareRig(t, vfs.NewMem())
	require.NoError(t, r.fs.MkdirAll("/db"))
	require.NoError(t, r.fs.SyncDir("/"))
	ix, err := Strategy{}.Create(r.spec)
	require.NoError(t, err)
	r.x = ix.(*Index)
	return r
}

// bareRig has no index yet.
func bareRig(t testing.TB, fs *vfs.Mem) *rig {
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	r := &rig{t: t, rnd: newRand(t), fs: fs, h: d.Register(), model: map[pair]bool{}}
	r.spec = index.Spec{
		Table: testTable, Number: 2, Name: "orders.by_customer", DatabaseID: [16]byte{1, 2, 3},
		Arena: a, Domain: d, FS: fs, Logger: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(func() {
		if r.x != nil {
			require.NoError(t, r.x.Close())
		}
		d.Close()
		require.Zero(t, a.Stats().InUse, "memory is left over")
		require.NoError(t, a.Close())
	})
	return r
}

func (r *rig) insert(p pair) {
	r.h.Pin()
	defer r.h.Unpin()
	require.NoError(r.t, r.x.Insert(r.h, []byte(p.key), p.row, nil))
	r.model[p] = true
}

func (r *rig) remove(p pair) {
	r.h.Pin()
	defer r.h.Unpin()
	removed, err := r.x.Remove(r.h, []byte(p.key), p.row, func() bool { return true })
	require.NoError(r.t, err)
	require.Equal(r.t, r.model[p], removed)
	delete(r.model, p)
}

// change makes n random changes, about as many removals as there are entries to
// spare above the wanted number.
func (r *rig) change(n, wanted int, key func(*rand.Rand) string) {
	present := slices.Collect(maps.Keys(r.model))
	slices.SortFunc(present, comparePairs)
	for range n {
		if len(present) > 0 && r.rnd.IntN(wanted+len(present)) > wanted*3/2 {
			i := r.rnd.IntN(len(present))
			r.remove(present[i])
			present = slices.Delete(present, i, i+1)
			continue
		}
		p := pair{key(r.rnd), rowid.Make(testTable, uint64(1+r.rnd.IntN(50)))}
		if !r.model[p] {
			present = append(present, p)
		}
		r.insert(p)
	}
}

func scanAll(x *Index, h *epoch.Handle) (list []pair, err error) {
	var c index.Cursor
	var b index.Batch
	for more := true; more; {
		h.Pin()
		more, err = x.Scan(h, index.Range{}, &c, &b)
		h.Unpin()
		if err != nil {
			return nil, err
		}
		for i := range b.Len() {
			list = append(list, pair{string(b.Key(i)), b.Row(i)})
		}
	}
	return list, nil
}

// sorted is a model in order.
func sorted(m map[pair]bool) []pair {
	list := slices.Collect(maps.Keys(m))
	slices.SortFunc(list, comparePairs)
	return list
}

// check compares the index with the model and validates it.
func (r *rig) check() {
	r.t.Helper()
	require.NoError(r.t, r.x.validate())
	r.equals(r.x, r.model)
}

func (r *rig) equals(x *Index, m map[pair]bool) {
	r.t.Helper()
	got, err := scanAll(x, r.h)
	require.NoError(r.t, err)
	want := sorted(m)
	if !slices.Equal(want, got) {
		require.Equal(r.t, len(want), len(got))
		for i := range want {
			require.Equal(r.t, want[i], got[i], "entry %d", i)
		}
	}
	require.EqualValues(r.t, len(want), x.Stats().Entries)
}

func (r *rig) begin() *capture {
	r.number++
	c, err := r.x.BeginCheckpoint(r.t.Context(), r.number)
	require.NoError(r.t, err)
	return c.(*capture)
}

// create makes the files of checkpoint n.
func (r *rig) create(n uint64) func(string) (vfs.File, error) {
	return func(ext string) (vfs.File, error) { return r.spec.FS.Create(fmt.Sprintf("/db/%d.%s", n, ext)) }
}

func (r *rig) write(c *capture) []index.FileInfo {
	files, err := c.Write(r.t.Context(), r.create(r.number))
	require.NoError(r.t, err)
	require.LessOrEqual(r.t, len(files), MaxGenerations)
	return files
}

// publish takes a checkpoint and lets go of files like the engine does.
func (r *rig) publish() []index.FileInfo {
	c := r.begin()
	model := maps.Clone(r.model)
	files := r.write(c)
	r.published(c, files, model)
	return files
}

func (r *rig) published(c *capture, files []index.FileInfo, model map[pair]bool) {
	c.Published()
	if r.shrink && r.rnd.IntN(3) > 0 {
		require.NoError(r.t, r.x.Shrink(r.t.Context(), r.rnd.IntN(3) > 0))
	}
	r.kept = append(r.kept, checkpoint{files, model})
	r.kept = r.kept[max(0, len(r.kept)-2):]
	r.letGo()
}

// letGo deletes the files that no kept checkpoint needs.
func (r *rig) letGo() {
	needed := map[string]bool{}
	for _, c := range r.kept {
		for _, f := range c.files {
			needed[f.Name] = true
		}
	}
	names, err := r.fs.List("/db")
	require.NoError(r.t, err)
	for _, name := range names {
		if !needed["/db/"+name] {
			require.NoError(r.t, r.fs.Remove("/db/"+name))
		}
	}
}

// open opens a checkpoint as a second index, beside the rig's.
func (r *rig) open(files []index.FileInfo) *Index {
	x, err := r.tryOpen(files)
	require.NoError(r.t, err)
	return x
}

func (r *rig) tryOpen(files []index.FileInfo) (*Index, error) {
	ix, err := Strategy{}.Open(r.t.Context(), r.spec, files)
	if err != nil {
		return nil, err
	}
	return ix.(*Index), nil
}

// reopen goes on from the last published checkpoint, as after a crash.
func (r *rig) reopen() {
	require.NoError(r.t, r.x.Close())
	last := r.kept[len(r.kept)-1]
	r.x, r.model = r.open(last.files), maps.Clone(last.model)
}

// checkKept opens the checkpoints kept and compares them with what they should
// have.
func (r *rig) checkKept() {
	r.t.Helper()
	for _, c := range r.kept {
		x := r.open(c.files)
		require.NoError(r.t, x.validate())
		r.equals(x, c.model)
		require.NoError(r.t, x.Close())
	}
}

func size(files []index.FileInfo) (n int64) {
	for _, f := range files {
		n += f.Size
	}
	return n
}

// The key spaces of the tests.
var keySpaces = []struct {
	name   string
	make   func(*rand.Rand) string
	wanted int // entries
}{
	{"integers", func(rnd *rand.Rand) string { return integer(rnd.Uint64N(1 << 40)) }, 4000},
	{"few keys", func(rnd *rand.Rand) string { return integer(rnd.Uint64N(30)) }, 1500},
	{"strings", func(rnd *rand.Rand) string { return fmt.Sprintf("customer %d of %d", rnd.IntN(1000), rnd.IntN(20)) }, 3000},
	{"long keys", func(rnd *rand.Rand) string {
		return string(bytes.Repeat([]byte{byte('a' + rnd.IntN(3))}, 300+rnd.IntN(3000))) + integer(rnd.Uint64N(100))
	}, 150},
}

func integer(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
