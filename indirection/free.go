package indirection

import (
	"encoding/binary"

	"github.com/rekindledb/rekindle/internal/arena"
)

// FreeOrdinals calls fn for ordinals below the high-water mark that are empty in
// the image, ascending from from on, and returns where to go on; HighWater says
// that there are no more. It goes page by page and stops after the page in which
// the max-th is found. Pages without room are not read.
//
// In a live array the ordinals may be in use by now: use Array.FreeOrdinals.
func (im *Image) FreeOrdinals(from uint64, max int, fn func(ordinal uint64)) (next uint64, err error) {
	var r pageReader
	load := func(page uint64, dst *[pageBytes]byte) (bool, error) { return r.readRoom(im, page, dst) }
	return im.span().walkFree(from, max, load, fn)
}

// FreeOrdinals finds ordinals for the allocator after a restart. It is like
// Image.FreeOrdinals for the image that the array was opened from, but of pages
// that were written since it has only what NoteFree has noted. One goroutine at a
// time calls it.
//
// An ordinal that is empty in the image of a page that nobody has written is
// free, and the allocator does not know it yet: a row's slot is written when
// the row comes and when it goes. So one walk while the array is in use gives
// no ordinal twice and none that is in use, provided that fresh ordinals come
// from the array's HighWater after replay or above. Newer images have such a page
// as the first one has it. What was empty when NoteFree looked is free for the same
// reason, whatever has become of the rest of its page.
func (x *Array) FreeOrdinals(from uint64, max int, fn func(ordinal uint64)) (next uint64, err error) {
	if x.opened.high == 0 {
		return from, nil
	}
	s := scanner{x: x, handle: x.takeHandle()}
	defer x.returnHandle(s.handle)
	return x.opened.walkFree(from, max, s.readRoom, fn)
}

// emptySlots is the set of the empty slots of a page.
type emptySlots [PageSlots / 64]uint64

// NoteFree remembers the empty slots of the pages in the arena for FreeOrdinals.
// It is called once, after replay, which has put them there, and before anybody
// else uses the array. A row that is there now, and goes later, is not among them:
// whoever removes it tells the allocator.
func (x *Array) NoteFree() {
	high := x.HighWater()
	d := x.dir.Load()
	for i := range d.blocks {
		block := arena.Ref(d.blocks[i].Load())
		if block == 0 {
			continue
		}
		first := (d.first + uint64(i)) * piaPages
		for page := first; page < first+piaPages; page++ {
			if state := x.pageWord(block, page).Load(); inArena(state) {
				x.noteFree(page, arena.Ref(state))
			}
		}
	}
	if x.opened.high == 0 {
		x.opened.first = max(d.first<<piaShift, 1)
	}
	x.opened.high = high
}

func (x *Array) noteFree(page uint64, ref arena.Ref) {
	var empty emptySlots
	for slot := range uint64(PageSlots) {
		if x.slot(ref, slot).Load() == 0 {
			empty[slot/64] |= 1 << (slot % 64)
		}
	}
	if empty == (emptySlots{}) {
		return
	}
	if x.noted == nil {
		x.noted = map[uint64]emptySlots{}
	}
	x.noted[page] = empty
}

// takeNoted fills a page with 0 where the page is noted to be empty, and forgets it.
func (x *Array) takeNoted(page uint64, dst *[pageBytes]byte) bool {
	empty, ok := x.noted[page]
	if !ok {
		return false
	}
	delete(x.noted, page)
	for slot := range PageSlots {
		binary.LittleEndian.PutUint64(dst[slot*wordBytes:], ^empty[slot/64]>>(slot%64)&1)
	}
	return true
}

// span are the ordinals that an image knows of. Those below its first PIA are left
// alone: a table whose ordinals begin high keeps them together.
type span struct {
	first uint64 // at least 1
	high  uint64 // 0: none
}

func (im *Image) span() span { return span{first: max(im.firstPIA<<piaShift, 1), high: im.highWater} }

// walkFree calls fn for the empty slots of the pages that load loads.
func (s span) walkFree(from uint64, max int, load func(uint64, *[pageBytes]byte) (bool, error), fn func(uint64)) (uint64, error) {
	var b [pageBytes]byte
	if from < s.first {
		from = s.first
	}
	for ; from < s.high && max > 0; from = (pageOf(from) + 1) << pageShift {
		room, err := load(pageOf(from), &b)
		if err != nil {
			return from, err
		}
		if room {
			max -= s.eachFree(from, &b, fn)
		}
	}
	return min(from, s.high), nil
}

// eachFree calls fn for the empty slots of a page from from on and counts them.
func (s span) eachFree(from uint64, page *[pageBytes]byte, fn func(uint64)) (n int) {
	end := min((pageOf(from)+1)<<pageShift, s.high)
	for ordinal := from; ordinal < end; ordinal++ {
		if word(page[:], int(slotIn(ordinal))) == 0 {
			fn(ordinal)
			n++
		}
	}
	return n
}

// readRoom reads a page unless all its slots are in use.
func (r *pageReader) readRoom(im *Image, page uint64, dst *[pageBytes]byte) (bool, error) {
	e, err := r.entry(im, page)
	if err != nil || e.live == PageSlots {
		return false, err
	}
	_, err = r.read(im, page, dst)
	return true, err
}

// readRoom is pageReader.readRoom for pages that nobody has written, and for what is
// noted.
func (s *scanner) readRoom(page uint64, dst *[pageBytes]byte) (bool, error) {
	s.handle.Pin()
	defer s.handle.Unpin()
	state, b := s.x.pageState(page)
	switch {
	case s.x.takeNoted(page, dst):
		return true, nil
	case state == 0:
		clear(dst[:])
		return true, nil
	case !isMapped(state) || state&stateWritten != 0:
		return false, nil
	case state&stateVerified != 0 && state&stateOverlay == 0:
		return true, b.copy(state, dst[:])
	}
	return s.reader.readRoom(&b.image, page, dst)
}
