package indirection

import (
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
)

// Scan calls fn for every slot from ordinal from on that is not empty, in
// ascending order, until fn returns false. It walks page by page: the slots of a
// page are read together, and fn runs pinned, so a version that a word names
// stays readable in fn and no longer. The caller is not pinned, and fn does not
// wait for anything. A slot that changes meanwhile is seen before or after the
// change.
//
// Pages that nobody has touched are read from the image and stay untouched, so
// a scan needs no memory.
func (x *Array) Scan(from uint64, fn func(ordinal uint64, w Word) bool) error {
	s := scanner{x: x, handle: x.takeHandle()}
	defer x.returnHandle(s.handle)
	for page := pageOf(from); ; page++ {
		var more bool
		if page, more = x.nextPage(page); !more {
			return nil
		}
		if goOn, err := s.page(page, from, fn); err != nil || !goOn {
			return err
		}
	}
}

// InMemory calls fn for every slot of one page from an ordinal on that names a
// version in memory: of the first page that is in memory itself, as all pages with
// such slots are. It returns where to go on, or false if there was none left. The
// caller is pinned.
func (x *Array) InMemory(from uint64, fn func(ordinal uint64, w Word)) (next uint64, more bool) {
	for page := pageOf(from); ; page++ {
		if page, more = x.nextPage(page); !more {
			return 0, false
		}
		state, _ := x.pageState(page)
		if !inArena(state) {
			continue
		}
		next = (page + 1) << pageShift
		for ordinal := max(from, page<<pageShift); ordinal < next; ordinal++ {
			if w := Word(x.slot(arena.Ref(state), ordinal).Load()); w.IsRef() {
				fn(ordinal, w)
			}
		}
		return next, true
	}
}

// nextPage returns the first page from the given one on that can have rows.
func (x *Array) nextPage(page uint64) (uint64, bool) {
	d, b := x.dir.Load(), x.newest.Load()
	page = max(page, d.first<<(piaShift-pageShift))
	for i := piaOfPage(page) - d.first; i < uint64(len(d.blocks)); i++ {
		if d.blocks[i].Load() != 0 || b.hasPIA(d.first+i) {
			return page, true
		}
		page = (d.first + i + 1) << (piaShift - pageShift)
	}
	return 0, false
}

// scanner is the state of one scan.
type scanner struct {
	x      *Array
	handle *epoch.Handle
	reader pageReader
	words  [PageSlots]Word
	buf    [pageBytes]byte
}

// page delivers one page to fn, within one pin.
func (s *scanner) page(page, from uint64, fn func(uint64, Word) bool) (bool, error) {
	s.handle.Pin()
	defer s.handle.Unpin()
	if found, err := s.read(page); err != nil || !found {
		return err == nil, err
	}
	first := page << pageShift
	for i := range s.words {
		w := s.words[i]
		if ordinal := first + uint64(i); w != 0 && ordinal >= from && !fn(ordinal, w) {
			return false, nil
		}
	}
	return true, nil
}

// read reads the words of a page; false means that all are 0.
func (s *scanner) read(page uint64) (bool, error) {
	state, b := s.x.pageState(page)
	switch {
	case isFree(state):
		return false, nil
	case isMapped(state):
		found, err := s.readMapped(page, state, b)
		for i := range s.words {
			s.words[i] = word(s.buf[:], i)
		}
		return found, err
	}
	for i := range s.words {
		s.words[i] = Word(s.x.slot(refOf(state), uint64(i)).Load())
	}
	return true, nil
}

func (s *scanner) readMapped(page, state uint64, b *base) (bool, error) {
	if state&stateVerified != 0 && state&stateOverlay == 0 {
		return true, b.copy(state, s.buf[:])
	}
	return s.reader.read(&b.image, page, &s.buf)
}

// pageState returns the state of a page, with its base if it is in a file. That of
// a page whose block has not been made is stateMapped if the image has its PIA.
func (x *Array) pageState(page uint64) (uint64, *base) {
	if block := x.block(page); block != 0 {
		state := x.pageWord(block, page).Load()
		if !isMapped(state) {
			return state, nil
		}
		return state, x.baseOf(state)
	}
	if b := x.newest.Load(); b.hasPIA(piaOfPage(page)) {
		return stateMapped | b.bit, b
	}
	return 0, nil
}

func (x *Array) takeHandle() *epoch.Handle {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := len(x.handles) - 1
	if last < 0 {
		return x.domain.Register()
	}
	h := x.handles[last]
	x.handles = x.handles[:last]
	return h
}

func (x *Array) returnHandle(h *epoch.Handle) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handles = append(x.handles, h)
}
