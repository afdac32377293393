package btree

import (
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/rowid"
)

// fenced returns memory for a node at whose end, and a page before it, every
// access faults, and makes faults panics for the rest of the test.
func fenced(t testing.TB, atEnd bool) []byte {
	const page = 4096
	mem, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	require.NoError(t, syscall.Mprotect(mem[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(mem[2*page:], syscall.PROT_NONE))
	old := debug.SetPanicOnFault(true)
	t.Cleanup(func() {
		debug.SetPanicOnFault(old)
		require.NoError(t, syscall.Munmap(mem))
	})
	if atEnd {
		return mem[2*page-NodeSize : 2*page]
	}
	return mem[page : page+NodeSize]
}

// TestTornReads reads nodes full of nonsense, as a reader may see them while
// they are written or reused. It may find anything, but must stay inside and
// notice.
func TestTornReads(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		block := fenced(t, atEnd)
		rnd := newRand(t)
		tree := &Tree{}
		for range effort(12000) {
			fillNonsense(rnd, block)
			g := guard{node: node{unsafe.Pointer(&block[0])}, state: unsafe.Pointer(&block[0])}
			g.seen = g.word0()&^(latched|obsolete) + versionStep // not what is there
			readAll(t, tree, g, randomBytes(rnd, rnd.IntN(40), 4), rowid.ID(rnd.IntN(3)))
		}
	}
}

// fillNonsense writes random words, most of the time with a meta word that
// could be one.
func fillNonsense(rnd *rand.Rand, block []byte) {
	n := node{unsafe.Pointer(&block[0])}
	for at := uintptr(0); at < NodeSize; at += 8 {
		n.setWord(at, rnd.Uint64()>>rnd.IntN(64))
	}
	if rnd.IntN(8) == 0 {
		return
	}
	room := rnd.IntN(128)
	length := []int{0, 5, 8, 9, slotted, slotted, slotted}[rnd.IntN(7)]
	level := []int{0, 0, 1, overflowLevel}[rnd.IntN(4)]
	n.setMeta(makeMeta(level, rnd.IntN(room+2), room, rnd.IntN(256), rnd.IntN(512), length))
	for at := uintptr(headerSize); at < NodeSize/2; at += 8 {
		if rnd.IntN(2) == 0 {
			n.setWord(at, 0)
		}
	}
}

// readAll does with a node what readers do before they look at its version.
func readAll(t testing.TB, tree *Tree, g guard, key []byte, row rowid.ID) {
	p := newProbe(key, uint64(row))
	var b index.Batch
	var c index.Cursor
	for _, reverse := range []bool{false, true} {
		b.Begin(&c)
		s := scan{tree: tree, rng: index.Range{Lo: key, Reverse: reverse}, batch: &b}
		_, err := s.leaf(&g, &p, below)
		require.Error(t, err)
	}
	rows, _, _ := tree.appendRows(nil, &g, &p)
	require.LessOrEqual(t, len(rows), 256)
	m := g.meta()
	if !m.sane() {
		return
	}
	for _, bias := range []int{below, upTo} {
		i, err := tree.search(&g, m, &p, bias)
		require.True(t, err != nil || i >= 0 && i <= m.count())
		if err == nil {
			_, err = tree.step(&g, m, i)
			require.Equal(t, errRestart, err)
		}
	}
	for i := range m.count() {
		_, _, err := tree.separator(nil, &fence{g, m, i + 1})
		require.Equal(t, errRestart, err)
	}
	lanes := batch{tree: tree, count: 1}
	lanes.lanes[0] = lane{guard: g, p: p}
	lanes.search(lanes.align())
	lanes.choose()
	require.False(t, lanes.lanes[0].kind == descending)
}

// FuzzImage reads images that CheckImage has let pass.
func FuzzImage(f *testing.F) {
	rnd := newRand(f)
	for _, keys := range keyMakers {
		r := newRig(f, kinds[1].store)
		for range 60 {
			require.NoError(f, r.insert(keys.make(rnd), 1))
		}
		g, err := r.enterRoot()
		require.NoError(f, err)
		f.Add(AppendImage(nil, g.p), []byte("key"))
	}
	f.Fuzz(func(t *testing.T, image, key []byte) {
		block := fenced(t, true)
		copy(block, image)
		n := node{unsafe.Pointer(&block[0])}
		if len(key) > MaxKey || !CheckImage(block, n.id()) {
			return
		}
		a := arena.New(arena.Config{})
		tree := &Tree{arena: a, store: NewNodeTable(a)}
		g := guard{node: n, state: n.at(idAt), seen: n.word(idAt)}
		p := newProbe(key, 0)
		m := g.meta()
		if m.level() == overflowLevel {
			return
		}
		for _, bias := range []int{below, upTo} {
			i, err := tree.search(&g, m, &p, bias)
			require.True(t, err != nil || i >= 0 && i <= m.count())
		}
		it := new(items)
		if err := tree.load(it, &g); err == nil {
			require.Len(t, it.list, m.count())
		}
	})
}
