package chainindex

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/rowid"
)

func (x *Index) headTombs() int64 { return x.chain.Load().head().tombs.Load() }

func (x *Index) headEntries() int64 { return x.chain.Load().head().entries() }

// aged returns an index whose entries (key, 1) … (key, n) are in a file.
func (r *rig) aged(key string, n int) (*Index, *session) {
	x := r.create()
	s := r.session(x)
	for i := range n {
		s.insert(key, i+1)
	}
	r.checkpoint(x)
	require.EqualValues(r.t, 0, x.headEntries())
	return x, s
}

func TestTombstones(t *testing.T) {
	rows := func(ns ...int) (list []rowid.ID) {
		for _, n := range ns {
			list = append(list, row(n))
		}
		return list
	}
	type step struct {
		do         string // insert, remove, again (a removal that finds nothing), checkpoint, freeze
		row        int
		entries    int64 // of the head afterwards, tombstones included
		tombstones int64
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  []rowid.ID
	}{
		{"of an entry in a file", []step{{"remove", 2, 1, 1}, {"again", 2, 1, 1}}, rows(1, 3)},
		{"none for an entry of the head alone", []step{{"insert", 9, 1, 0}, {"remove", 9, 0, 0}}, rows(1, 2, 3)},
		{"is replaced by an insertion", []step{{"remove", 2, 1, 1}, {"insert", 2, 1, 0}}, rows(1, 2, 3)},
		{"and comes back", []step{{"remove", 2, 1, 1}, {"insert", 2, 1, 0}, {"remove", 2, 1, 1}, {"again", 2, 1, 1}}, rows(1, 3)},
		{"of an entry in both", []step{{"insert", 2, 1, 0}, {"remove", 2, 1, 1}}, rows(1, 3)},
		{"of an entry that is frozen", []step{{"insert", 4, 1, 0}, {"freeze", 0, 0, 0}, {"remove", 4, 1, 1}}, rows(1, 2, 3)},
		{"under a frozen tombstone there is nothing", []step{{"remove", 2, 1, 1}, {"freeze", 0, 0, 0}, {"again", 2, 0, 0}}, rows(1, 3)},
		{"insertion over a frozen tombstone", []step{{"remove", 2, 1, 1}, {"freeze", 0, 0, 0}, {"insert", 2, 1, 0}}, rows(1, 2, 3)},
		{"no tombstone over a tombstone", []step{{"remove", 2, 1, 1}, {"freeze", 0, 0, 0}, {"insert", 2, 1, 0}, {"remove", 2, 0, 0}}, rows(1, 3)},
		{"in a file", []step{{"remove", 2, 1, 1}, {"checkpoint", 0, 0, 0}, {"again", 2, 0, 0}}, rows(1, 3)},
		{"insertion over one in a file", []step{{"remove", 2, 1, 1}, {"checkpoint", 0, 0, 0}, {"insert", 2, 1, 0}, {"checkpoint", 0, 0, 0}}, rows(1, 2, 3)},
		{"all", []step{{"remove", 1, 1, 1}, {"remove", 2, 2, 2}, {"remove", 3, 3, 3}, {"checkpoint", 0, 0, 0}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			x, s := r.aged("key", 3)
			x.plan = lagging
			for i, step := range c.steps {
				switch step.do {
				case "insert":
					s.insert("key", step.row)
				case "remove":
					require.True(t, s.remove("key", step.row), "step %d", i)
				case "again":
					require.False(t, s.remove("key", step.row), "step %d", i)
				case "checkpoint":
					r.checkpoint(x)
				case "freeze":
					capture, _ := r.begin(x)
					capture.Abandon()
				}
				require.Equal(t, step.entries, x.headEntries(), "step %d", i)
				require.Equal(t, step.tombstones, x.headTombs(), "step %d", i)
			}
			require.EqualValues(t, c.want, append([]rowid.ID(nil), s.lookup("key")...))
			m := &indextest.Model{}
			for _, want := range c.want {
				m.Insert(indextest.Entry{Key: "key", Row: want})
			}
			s.equals(m)
			require.GreaterOrEqual(t, x.Stats().Entries, int64(len(c.want)), "entries in two layers count twice")
			r.session(r.open(r.checkpoint(x))).equals(m)
		})
	}
}

// A tombstone is kept as long as a file may have what it removes, and then goes
// together with it.
func TestTombstonesInFiles(t *testing.T) {
	r := newRig(t)
	x, s := r.aged("key", 100)
	x.plan = lagging
	before := r.checkpoint(x)
	for n := 1; n <= 50; n++ {
		require.True(t, s.remove("key", n))
	}
	for n := 51; n <= 60; n++ {
		s.insert("key", n) // again
	}
	files := r.checkpoint(x)
	require.Len(t, files, 2)
	newest := x.chain.Load().files()[0].file.footer
	require.EqualValues(t, 50, newest.tombstones)
	require.EqualValues(t, 10, newest.entries)

	x.plan = func(_ int64, files []*layer) int { return len(files) }
	require.True(t, s.remove("key", 51))
	files = r.checkpoint(x)
	require.Len(t, files, 1)
	only := x.chain.Load().files()[0].file.footer
	require.Zero(t, only.tombstones)
	require.EqualValues(t, 49, only.entries)
	require.Zero(t, only.older)
	require.Len(t, s.lookup("key"), 49)
	require.Len(t, r.session(r.open(files)).lookup("key"), 49)
	require.Len(t, r.session(r.open(before)).lookup("key"), 100, "the checkpoint before is what it was")
}

// A merge that leaves out the oldest file keeps tombstones, and passes each by
// that an entry of a newer file has made void.
func TestPartialMergeKeepsTombstones(t *testing.T) {
	r := newRig(t)
	x, s := r.aged("key", 10)
	x.plan = lagging
	require.True(t, s.remove("key", 1))
	require.True(t, s.remove("key", 2))
	r.checkpoint(x)
	s.insert("key", 2)
	x.plan = func(int64, []*layer) int { return 1 }
	files := r.checkpoint(x)
	require.Len(t, files, 2)
	merged := x.chain.Load().files()[0].file.footer
	require.EqualValues(t, 1, merged.tombstones)
	require.EqualValues(t, 1, merged.entries)
	require.Len(t, r.session(r.open(files)).lookup("key"), 9)
}

// What a reader meets between the two steps of an insertion over a tombstone,
// and of a removal, is the entry: it decides, and its tombstone has no effect.
func TestEntryBesideItsTombstone(t *testing.T) {
	r := newRig(t)
	x, s := r.aged("key", 3)
	head := x.chain.Load().head()
	s.h.Pin()
	for _, place := range []rowid.ID{livePlace(2), deadPlace(2), deadPlace(3)} {
		require.NoError(t, head.tree.Insert(s.h, []byte("key"), place, nil))
	}
	s.h.Unpin()
	head.tombs.Store(2)
	require.Equal(t, []rowid.ID{row(1), row(2)}, s.lookup("key"))
	for _, reverse := range []bool{false, true} {
		for size := 1; size < 4; size++ {
			require.Len(t, s.scan(index.Range{Reverse: reverse}, size), 2)
		}
	}
	require.True(t, s.remove("key", 2))
	require.Equal(t, []rowid.ID{row(1)}, s.lookup("key"))
	require.EqualValues(t, 2, x.headEntries())
}

// A scan over many removed entries gives way now and then, and comes to an end.
func TestScanOverManyTombstones(t *testing.T) {
	r := newRig(t)
	x := r.create()
	x.plan = lagging
	s := r.session(x)
	const n = 3*maxSkipped + 100
	for i := range n {
		s.insert(fmt.Sprintf("%08d", i), 1)
	}
	r.checkpoint(x)
	for i := range n {
		if i != 0 && i != n-1 {
			require.True(t, s.remove(fmt.Sprintf("%08d", i), 1))
		}
	}
	for _, reverse := range []bool{false, true} {
		var c index.Cursor
		var b index.Batch
		found, fills := 0, 0
		for more := true; more; fills++ {
			var err error
			more, err = s.fill(index.Range{Reverse: reverse}, &c, &b)
			require.NoError(t, err)
			found += b.Len()
		}
		require.Equal(t, 2, found)
		require.Greater(t, fills, 3)
	}
}
