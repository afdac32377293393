package iacow

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
)

// store is the node table, the blocks and the epochs of one index.
type store struct {
	table
	pool
	files [placeCount]atomic.Pointer[file] // what entries refer to

	epoch     atomic.Uint64
	published atomic.Uint64 // epoch that the last published checkpoint ended, 0 for none
	closing   atomic.Uint64 // epoch that the open capture needs old copies of, 0 for none

	// Old copies handed over while an epoch was captured, by the parity of the
	// epoch, chained; the first ones.
	retained [2]atomic.Uint64

	images struct { // overflow pages that were dropped before anyone changed them
		sync.Mutex
		late map[btree.NodeID]bool // dropped after the epoch that is being captured
	}
}

var _ btree.Store = (*store)(nil)

func newStore(a *arena.Arena, last *image) *store {
	s := &store{}
	s.table.init(a, last)
	s.pool.arena = a
	s.epoch.Store(1)
	if last != nil {
		s.epoch.Store(last.epoch + 1)
		s.published.Store(last.epoch)
		for place, f := range last.files {
			s.files[place].Store(f)
		}
	}
	return s
}

// Epoch returns the current epoch.
func (s *store) Epoch() uint64 { return s.epoch.Load() }

// Image returns the checked image of a node.
func (s *store) Image(id btree.NodeID, word uint64) (unsafe.Pointer, error) {
	e := entry(word)
	f := s.files[e.place()].Load()
	if f == nil {
		return nil, fault.ErrClosed
	}
	return f.node(id, e.block())
}

// FaultAt makes store a mapfile.Locator.
func (s *store) FaultAt(address uintptr) error {
	for i := range s.files {
		if f := s.files[i].Load(); f != nil {
			if err := f.FaultAt(address); err != nil {
				return err
			}
		}
	}
	return nil
}

// Replaced keeps an old copy if the capture under way needs it, and frees it
// otherwise.
func (s *store) Replaced(shard uint32, id btree.NodeID, old, epoch, now uint64) {
	if epoch != now {
		g, _ := s.at(id)
		s.note(g, id)
	}
	if entry(old).inFile() {
		return
	}
	c := s.closing.Load()
	if epoch <= c && epoch > s.published.Load() && s.needs(c, id, now) {
		s.retain(c, arena.Ref(old))
	} else {
		s.FreeBlock(shard, arena.Ref(old))
	}
}

// needs reports whether the capture of epoch c, 0 for none, has yet to learn what
// a node was that an operation of the epoch now changes.
func (s *store) needs(c uint64, id btree.NodeID, now uint64) bool {
	if c == 0 || now <= c {
		return false
	}
	g, i := s.at(id)
	return !g.has(capturedBits, i)
}

// retain puts an old copy on the list of the capture of epoch c.
func (s *store) retain(c uint64, ref arena.Ref) {
	list := &s.retained[c&1]
	for {
		first := list.Load()
		btree.Chain(s.block(ref), arena.Ref(first))
		if list.CompareAndSwap(first, uint64(ref)) {
			return
		}
	}
}

// Dropped takes over the last copy of a node. As long as the capture under way
// does not know that the node was still there at the end of its epoch, perhaps
// with another content, the entry stays as it is.
func (s *store) Dropped(shard uint32, id btree.NodeID, last, _, now uint64) {
	g, i := s.at(id)
	s.note(g, id)
	if entry(last).inFile() {
		s.droppedImage(id, now)
		g.set(goneBits, i)
		return
	}
	g.set(goneBits, i)
	if c := s.closing.Load(); s.needs(c, id, now) {
		s.retain(c, arena.Ref(last))
	} else {
		g.entry(i).Store(0)
		s.FreeBlock(shard, arena.Ref(last))
	}
}

// droppedImage notes an image whose entry is 0 already, if it was part of the
// tree in the epoch that is being captured.
func (s *store) droppedImage(id btree.NodeID, now uint64) {
	s.images.Lock()
	defer s.images.Unlock()
	if c := s.closing.Load(); c != 0 && now > c {
		if s.images.late == nil {
			s.images.late = make(map[btree.NodeID]bool)
		}
		s.images.late[id] = true
	}
}

// isLate reports whether a node without an entry was dropped as an image after
// the epoch that is being captured.
func (s *store) isLate(id btree.NodeID) bool {
	s.images.Lock()
	defer s.images.Unlock()
	return s.images.late[id]
}

// stopRetaining ends the need for old copies, which was that of the capture of
// epoch c. Operations under way may still add to its list, so it is emptied once
// more when they have ended.
func (s *store) stopRetaining(c uint64) {
	s.images.Lock()
	s.closing.Store(0)
	s.images.late = nil
	s.images.Unlock()
	s.purge(c)
}

// purge frees the copies retained for the capture of epoch c.
func (s *store) purge(c uint64) {
	s.takeRetained(c, func(btree.NodeID, arena.Ref) {})
}

// takeRetained empties the list of the capture of epoch c. It calls fn for every
// copy and frees it. The entry of a dropped node is cleared.
func (s *store) takeRetained(c uint64, fn func(id btree.NodeID, ref arena.Ref)) {
	for ref := arena.Ref(s.retained[c&1].Swap(0)); ref != 0; {
		p := s.block(ref)
		next := btree.Chained(p)
		id := btree.HeaderOf(p).ID
		fn(id, ref)
		if g, i := s.at(id); g.has(goneBits, i) {
			g.entry(i).CompareAndSwap(uint64(ref), 0)
		}
		s.FreeBlock(0, ref)
		ref = next
	}
}

// close gives everything back. No reader is left.
func (s *store) close() error {
	s.purge(0)
	s.purge(1)
	s.table.close(func(e entry) {
		if !e.inFile() {
			s.giveBack(arena.Ref(e))
		}
	})
	s.pool.close()
	var errs []error
	for i := range s.files {
		if f := s.files[i].Swap(nil); f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(errs...)
}
