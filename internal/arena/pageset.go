package arena

import "math/bits"

// pageSet is a set of the pages of a chunk, or of run lengths in pages.
type pageSet [pagesPerChunk / 64]uint64

func (s *pageSet) add(n int)    { s[n>>6] |= 1 << (n & 63) }
func (s *pageSet) remove(n int) { s[n>>6] &^= 1 << (n & 63) }

func (s *pageSet) addRun(first, n int) {
	for i := first; i < first+n; i++ {
		s.add(i)
	}
}

func (s *pageSet) removeRun(first, n int) {
	for i := first; i < first+n; i++ {
		s.remove(i)
	}
}

// next returns the first n ≥ from that is in the set, pagesPerChunk if none.
func (s *pageSet) next(from int) int { return s.scan(from, 0) }

// nextGap returns the first n ≥ from that is not in the set.
func (s *pageSet) nextGap(from int) int { return s.scan(from, ^uint64(0)) }

// scan finds the first bit from from on that differs from those of skip.
func (s *pageSet) scan(from int, skip uint64) int {
	for i := from >> 6; i < len(s); i++ {
		w := s[i] ^ skip
		if i == from>>6 {
			w &= ^uint64(0) << (from & 63)
		}
		if w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
	}
	return pagesPerChunk
}

// longest returns the length of the longest run.
func (s *pageSet) longest() int {
	most := 0
	for i := s.next(0); i+most < pagesPerChunk; {
		end := s.nextGap(i)
		most = max(most, end-i)
		i = s.next(end)
	}
	return most
}

// minRun is the length of a run into which spans of blocks of up to 4 KiB fit.
const minRun = 4

// inRuns returns how many pages are in runs of at least minRun.
func (s *pageSet) inRuns() (n int) {
	for i := s.next(0); i < pagesPerChunk; {
		end := s.nextGap(i)
		if end-i >= minRun {
			n += end - i
		}
		i = s.next(end)
	}
	return n
}

// findRun returns the start of the shortest run of at least n, the first of those.
// There is one.
func (s *pageSet) findRun(n int) (first int) {
	least := pagesPerChunk
	for i := s.next(0); i < pagesPerChunk; {
		end := s.nextGap(i)
		if end-i >= n && end-i < least {
			first, least = i, end-i
		}
		i = s.next(end)
	}
	return first
}
