package indirection

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
// Image.FreeOrdinals for the image that the array was opened from, but leaves
// out pages that were written since.
//
// An ordinal that is empty in the image of a page that nobody has written is
// free, and the allocator does not know it yet: a row's slot is written when
// the row comes and when it goes. So one walk while the array is in use gives
// no ordinal twice and none that is in use, provided that fresh ordinals come
// from the array's HighWater after replay or above. Newer images have such a page
// as the first one has it.
func (x *Array) FreeOrdinals(from uint64, max int, fn func(ordinal uint64)) (next uint64, err error) {
	if x.opened.high == 0 {
		return from, nil
	}
	s := scanner{x: x, handle: x.takeHandle()}
	defer x.returnHandle(s.handle)
	return x.opened.walkFree(from, max, s.readRoom, fn)
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

// readRoom is pageReader.readRoom for pages that nobody has written.
func (s *scanner) readRoom(page uint64, dst *[pageBytes]byte) (bool, error) {
	s.handle.Pin()
	defer s.handle.Unpin()
	state, b := s.x.pageState(page)
	switch {
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
