package btree

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// entry of the model.
type entry struct {
	key string
	row rowid.ID
}

func less(a, b entry) bool {
	return index.Compare([]byte(a.key), a.row, []byte(b.key), b.row) < 0
}

// model is a sorted slice of entries.
type model struct{ list []entry }

func (m *model) find(e entry) (int, bool) {
	i := sort.Search(len(m.list), func(i int) bool { return !less(m.list[i], e) })
	return i, i < len(m.list) && m.list[i] == e
}

func (m *model) insert(e entry) {
	if i, ok := m.find(e); !ok {
		m.list = slices.Insert(m.list, i, e)
	}
}

func (m *model) remove(e entry) bool {
	i, ok := m.find(e)
	if ok {
		m.list = slices.Delete(m.list, i, i+1)
	}
	return ok
}

func (m *model) lookup(key string) (rows []rowid.ID) {
	i, _ := m.find(entry{key: key})
	for ; i < len(m.list) && m.list[i].key == key; i++ {
		rows = append(rows, m.list[i].row)
	}
	return rows
}

func (m *model) scan(r index.Range) (list []entry) {
	for _, e := range m.list {
		if r.Contains([]byte(e.key)) {
			list = append(list, e)
		}
	}
	if r.Reverse {
		slices.Reverse(list)
	}
	return list
}

// keyMakers are kinds of keys that stress one part of the layout each.
var keyMakers = []struct {
	name string
	make func(r *rand.Rand) []byte
}{
	{"uint64", func(r *rand.Rand) []byte { return binary.BigEndian.AppendUint64(nil, r.Uint64()) }},
	{"dense", func(r *rand.Rand) []byte { return binary.BigEndian.AppendUint64(nil, r.Uint64N(3000)) }},
	{"few", func(r *rand.Rand) []byte { return []byte{byte(r.IntN(3))} }},
	{"short", func(r *rand.Rand) []byte { return randomBytes(r, r.IntN(5), 3) }},
	{"zeros", func(r *rand.Rand) []byte { return randomBytes(r, r.IntN(24), 2) }},
	{"shared", func(r *rand.Rand) []byte {
		return append([]byte("a-long-prefix-shared-by-all-keys/"), randomBytes(r, r.IntN(12), 256)...)
	}},
	{"tree", func(r *rand.Rand) []byte {
		return fmt.Appendf(nil, "dir%d/sub%d/file%d", r.IntN(3), r.IntN(100), r.IntN(1000))
	}},
	{"long", func(r *rand.Rand) []byte { return randomBytes(r, r.IntN(1200), 2) }},
	{"huge", func(r *rand.Rand) []byte {
		key := make([]byte, r.IntN(effort(MaxKey-8)+1)+8)
		copy(key[len(key)-8:], binary.BigEndian.AppendUint64(nil, r.Uint64()))
		return key
	}},
	{"mixed", func(r *rand.Rand) []byte {
		if r.IntN(20) == 0 {
			return randomBytes(r, r.IntN(600), 4)
		}
		return randomBytes(r, r.IntN(40), 4)
	}},
}

func randomBytes(r *rand.Rand, n, alphabet int) []byte {
	key := make([]byte, n)
	for i := range key {
		key[i] = byte(r.IntN(alphabet))
	}
	return key
}

func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func forAll(t *testing.T, fn func(t *testing.T, r *rig, rnd *rand.Rand, key func(*rand.Rand) []byte)) {
	for _, kind := range kinds {
		for _, keys := range keyMakers {
			t.Run(kind.name+"/"+keys.name, func(t *testing.T) {
				fn(t, newRig(t, kind.store), newRand(t), keys.make)
			})
		}
	}
}

func TestModel(t *testing.T) {
	forAll(t, func(t *testing.T, r *rig, rnd *rand.Rand, key func(*rand.Rand) []byte) {
		m := new(model)
		for phase := range 6 {
			for range effort(400) {
				if rnd.IntN(10) < 8-5*(phase%2) {
					k, row := key(rnd), rowid.ID(rnd.IntN(50)+1)
					require.NoError(t, r.insert(k, row))
					m.insert(entry{string(k), row})
				} else if len(m.list) > 0 {
					e := m.list[rnd.IntN(len(m.list))]
					require.True(t, r.remove([]byte(e.key), e.row))
					require.True(t, m.remove(e))
				}
			}
			r.validate()
			r.compare(m, rnd, key)
		}
		for _, e := range shuffled(rnd, m.list) {
			require.True(t, r.remove([]byte(e.key), e.row))
		}
		r.validate()
		require.Equal(t, index.Stats{Bytes: NodeSize}, r.Stats())
	})
}

func shuffled(rnd *rand.Rand, list []entry) []entry {
	list = slices.Clone(list)
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (r *rig) insert(key []byte, row rowid.ID) error {
	r.h.Pin()
	defer r.h.Unpin()
	return r.Insert(r.h, key, row, nil)
}

func (r *rig) remove(key []byte, row rowid.ID) bool {
	r.h.Pin()
	defer r.h.Unpin()
	ok, err := r.Remove(r.h, key, row, always)
	require.NoError(r.t, err)
	return ok
}

// compare checks lookups and scans against the model.
func (r *rig) compare(m *model, rnd *rand.Rand, key func(*rand.Rand) []byte) {
	r.t.Helper()
	require.Equal(r.t, int64(len(m.list)), r.Stats().Entries)
	for range 50 {
		k := key(rnd)
		if len(m.list) > 0 && rnd.IntN(2) == 0 {
			k = []byte(m.list[rnd.IntN(len(m.list))].key)
		}
		r.h.Pin()
		rows, err := r.Lookup(r.h, k, nil)
		r.h.Unpin()
		require.NoError(r.t, err)
		require.Equal(r.t, m.lookup(string(k)), rows)
	}
	for _, reverse := range []bool{false, true} {
		ranges := []index.Range{{Reverse: reverse}, {Lo: key(rnd), Reverse: reverse}, {Hi: key(rnd), Reverse: reverse},
			{Lo: key(rnd), Hi: key(rnd), Reverse: reverse}}
		for _, rng := range ranges {
			requireSame(r.t, m.scan(rng), r.scan(rng))
		}
	}
}

// requireSame prints little, since keys may be long.
func requireSame(t testing.TB, want, have []entry) {
	t.Helper()
	for i := range min(len(want), len(have)) {
		require.Equal(t, want[i], have[i], "entry %d", i)
	}
	require.Len(t, have, len(want))
}

// scan collects a range.
func (r *rig) scan(rng index.Range) (list []entry) {
	var c index.Cursor
	var b index.Batch
	for more := true; more; {
		r.h.Pin()
		var err error
		more, err = r.Scan(r.h, rng, &c, &b)
		r.h.Unpin()
		require.NoError(r.t, err)
		for i := range b.Len() {
			list = append(list, entry{string(b.Key(i)), b.Row(i)})
		}
	}
	return list
}
