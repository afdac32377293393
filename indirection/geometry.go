package indirection

import "github.com/rekindledb/rekindle/rowid"

// The array's geometry: 512 words make a page, 128 pages a partial array (PIA).
const (
	// PageSlots is the number of slots in a page.
	PageSlots = 1 << pageShift

	pageShift = 9
	piaShift  = 16
	piaPages  = 1 << (piaShift - pageShift)
	wordBytes = 8
	pageBytes = PageSlots * wordBytes

	// maxSpan is how many PIAs one array may span, from the lowest in use to
	// the highest: about 10^12 rows. It keeps a stray ordinal from allocating
	// a directory of gigabytes.
	maxSpan = 1 << 24

	ordinalEnd = rowid.MaxOrdinal + 1
	pageEnd    = ordinalEnd >> pageShift
	piaEnd     = ordinalEnd >> piaShift
)

func pageOf(ordinal uint64) uint64 { return ordinal >> pageShift }
func piaOf(ordinal uint64) uint64  { return ordinal >> piaShift }

// slotIn is the slot of an ordinal in its page.
func slotIn(ordinal uint64) uint64 { return ordinal & (PageSlots - 1) }

// pageInPIA is the index of a page in its PIA.
func pageInPIA(page uint64) uint64 { return page & (piaPages - 1) }

// piaOfPage is the PIA of a page.
func piaOfPage(page uint64) uint64 { return page >> (piaShift - pageShift) }
