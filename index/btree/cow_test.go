package btree

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// restless is a store whose epoch moves all the time, so that almost every
// change copies its nodes.
type restless struct {
	*NodeTable
	calls atomic.Uint64
}

func (s *restless) Epoch() uint64 { return s.calls.Add(1) / 8 }

// snapshots is a store that can say what the tree was when an epoch ended, and
// can begin with such a tree as images.
type snapshots struct {
	*NodeTable
	epoch  atomic.Uint64
	images map[NodeID][]byte

	mu     sync.Mutex
	frozen map[NodeID][]copyAt // old copies and last ones of dropped nodes
	gone   []goneID
}

type copyAt struct{ entry, epoch uint64 }

type goneID struct {
	id    NodeID
	epoch uint64
}

func newSnapshots(a *arena.Arena, images map[NodeID][]byte) (*snapshots, error) {
	s := &snapshots{NodeTable: NewNodeTable(a), images: images, frozen: make(map[NodeID][]copyAt)}
	for range images {
		if _, err := s.NewID(0); err != nil {
			return nil, err
		}
	}
	for id := range images {
		word, err := s.Entry(id)
		if err != nil {
			return nil, err
		}
		word.Store(ImageBit | uint64(id))
	}
	s.epoch.Store(1)
	return s, nil
}

func (s *snapshots) Epoch() uint64 { return s.epoch.Load() }

func (s *snapshots) Image(id NodeID, entry uint64) (unsafe.Pointer, error) {
	image := s.images[NodeID(entry&^ImageBit)]
	if !CheckImage(image, id) {
		return nil, fmt.Errorf("image of node %d is damaged", id)
	}
	return unsafe.Pointer(&image[0]), nil
}

func (s *snapshots) Replaced(_ uint32, id NodeID, old, epoch, _ uint64) {
	if word, err := s.Entry(id); old&ImageBit == 0 && (err != nil || word.Load() != old) {
		panic("the newer copy was published first")
	}
	s.keep(id, old, epoch)
}

func (s *snapshots) keep(id NodeID, old, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[id] = append(s.frozen[id], copyAt{old, epoch})
}

func (s *snapshots) Dropped(_ uint32, id NodeID, last, epoch, now uint64) {
	s.keep(id, last, epoch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = append(s.gone, goneID{id, now})
}

// at returns the content of a node at the end of an epoch.
func (s *snapshots) at(id NodeID, end uint64) []byte {
	word, err := s.Entry(id)
	if err != nil {
		panic(err)
	}
	best := copyAt{}
	consider := func(c copyAt) {
		if c.entry != 0 && c.epoch <= end && (best.entry == 0 || c.epoch >= best.epoch) {
			best = c
		}
	}
	current := word.Load()
	if current != 0 {
		consider(copyAt{current, node{s.memory(current)}.epoch()})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.frozen[id] {
		consider(c)
	}
	return AppendImage(nil, s.memory(best.entry))
}

func (s *snapshots) memory(entry uint64) unsafe.Pointer {
	if entry&ImageBit != 0 {
		return unsafe.Pointer(&s.images[NodeID(entry&^ImageBit)][0])
	}
	return s.arena.Pointer(arena.Ref(entry))
}

// capture ends the epoch; what it returns reads the tree as it was then.
func (s *snapshots) capture(d *epoch.Domain) (func(root NodeID) map[NodeID][]byte, error) {
	end := s.epoch.Add(1) - 1
	if err := d.Barrier(context.Background()); err != nil {
		return nil, err
	}
	return func(root NodeID) map[NodeID][]byte {
		images := make(map[NodeID][]byte)
		s.walk(images, root, end)
		s.release(end)
		return compact(images, root)
	}, nil
}

func (s *snapshots) walk(images map[NodeID][]byte, id NodeID, end uint64) {
	image := s.at(id, end)
	images[id] = image
	n := node{unsafe.Pointer(&image[0])}
	m := n.meta()
	n.eachChildWord(func(at uintptr) {
		if w := n.word(at); w != 0 && (at != linkAt || m.level() > 0) {
			s.walk(images, idOf(w), end)
		}
	})
}

// compact renumbers nodes from 1, the root first.
func compact(images map[NodeID][]byte, root NodeID) map[NodeID][]byte {
	names := map[NodeID]NodeID{root: 1, 0: 0}
	for id := range images {
		if _, ok := names[id]; !ok {
			names[id] = NodeID(len(names))
		}
	}
	renamed := make(map[NodeID][]byte)
	for id, image := range images {
		n := node{unsafe.Pointer(&image[0])}
		n.eachChildWord(func(at uintptr) { n.setWord(at, uint64(names[idOf(n.word(at))])) })
		n.setWord(idAt, uint64(names[id]))
		renamed[names[id]] = image
	}
	return renamed
}

// release frees what only epochs up to end needed.
func (s *snapshots) release(end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, copies := range s.frozen {
		kept := copies[:0]
		for _, c := range copies {
			if c.epoch > end {
				kept = append(kept, c)
			} else if c.entry&ImageBit == 0 {
				s.FreeBlock(0, arena.Ref(c.entry))
			}
		}
		s.frozen[id] = kept
	}
	kept := s.gone[:0]
	for _, g := range s.gone {
		if g.epoch > end {
			kept = append(kept, g)
		} else {
			s.FreeID(g.id)
		}
	}
	s.gone = kept
}

func (s *snapshots) Close() {
	s.release(^uint64(0))
	s.NodeTable.Close()
}

// reopen makes a tree of images.
func reopen(t *testing.T, images map[NodeID][]byte, entries int) *rig {
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	s, err := newSnapshots(a, images)
	require.NoError(t, err)
	tree := Open(Config{Arena: a, Store: s, Table: "t", Index: "i"}, 1, int64(entries), int64(len(images)))
	r := &rig{Tree: tree, t: t, arena: a, domain: d, h: d.Register()}
	t.Cleanup(r.close)
	return r
}

// TestSnapshot takes the tree's state at the end of epochs while it changes on,
// opens it from images, and works that off.
func TestSnapshot(t *testing.T) {
	for _, keys := range keyMakers {
		t.Run(keys.name, func(t *testing.T) {
			rnd := newRand(t)
			r := reopen(t, emptyImages(t), 0)
			m := new(model)
			for range 4 {
				r.change(m, rnd, keys.make, effort(500))
				capture, err := r.store.(*snapshots).capture(r.domain)
				require.NoError(t, err)
				want := shuffled(rnd, m.list)
				r.change(m, rnd, keys.make, effort(500))
				r.validate()
				requireOpens(t, rnd, capture(r.Root()), want, keys.make)
			}
		})
	}
}

func emptyImages(t *testing.T) map[NodeID][]byte {
	r := newRig(t, func(a *arena.Arena) Store { return NewNodeTable(a) })
	g, err := r.enterRoot()
	require.NoError(t, err)
	return map[NodeID][]byte{1: AppendImage(nil, g.p)}
}

// change makes n random changes.
func (r *rig) change(m *model, rnd *rand.Rand, key func(*rand.Rand) []byte, n int) {
	for range n {
		if e := (entry{string(key(rnd)), rowid.ID(rnd.IntN(50) + 1)}); len(m.list) == 0 || rnd.IntN(3) > 0 {
			require.NoError(r.t, r.insert([]byte(e.key), e.row))
			m.insert(e)
		} else {
			e := m.list[rnd.IntN(len(m.list))]
			require.True(r.t, r.remove([]byte(e.key), e.row))
			m.remove(e)
		}
	}
}

func requireOpens(t *testing.T, rnd *rand.Rand, images map[NodeID][]byte, want []entry, key func(*rand.Rand) []byte) {
	t.Helper()
	m := new(model)
	for _, e := range want {
		m.insert(e)
	}
	r := reopen(t, images, len(want))
	r.validate()
	requireSame(t, m.list, r.scan(index.Range{}))
	r.compare(m, rnd, key)
	r.workOff(rnd, m.list, key)
}

// TestSnapshotsUnderLoad captures while writers insert ascending numbers, each
// in a range of its own. A snapshot that holds a number must hold the ones
// before it, and none that came after the epoch's end.
func TestSnapshotsUnderLoad(t *testing.T) {
	const writers = 3
	r := reopen(t, emptyImages(t), 0)
	s := r.store.(*snapshots)
	var done [writers]atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			h := r.domain.Register()
			for i := uint64(0); !stop.Load() && i < uint64(effort(16000)); i++ {
				h.Pin()
				err := r.Insert(h, orderKey(w, i), 1, nil)
				h.Unpin()
				if err != nil {
					t.Error(err)
					return
				}
				done[w].Store(i + 1)
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	for round := range uint64(effort(8) + 2) {
		for done[0].Load() < round*uint64(effort(1400)) {
			runtime.Gosched()
		}
		var before, after [writers]uint64
		for w := range before {
			before[w] = done[w].Load()
		}
		capture, err := s.capture(r.domain)
		require.NoError(t, err)
		for w := range after {
			after[w] = done[w].Load() + 1
		}
		requireOrdered(t, capture(r.Root()), before[:], after[:])
	}
	stop.Store(true)
	wg.Wait()
	r.validate()
}

// orderKey scatters the numbers of a writer, in an order that is its own.
func orderKey(w int, i uint64) []byte {
	key := []byte{byte(w)}
	return binary.BigEndian.AppendUint64(key, i*0x9e3779b97f4a7c15)
}

func requireOrdered(t *testing.T, images map[NodeID][]byte, before, after []uint64) {
	t.Helper()
	r := reopen(t, images, 0)
	have := make(map[string]bool)
	for _, e := range r.scan(index.Range{}) {
		have[e.key] = true
	}
	total := 0
	for w := range before {
		n := uint64(0)
		for have[string(orderKey(w, n))] {
			n++
		}
		require.LessOrEqual(t, before[w], n)
		require.LessOrEqual(t, n, after[w])
		total += int(n)
	}
	require.Len(t, have, total)
	r.count.add(0, int64(total), 0)
	r.validate()
}
