package iacow

import "encoding/binary"

// The node table in files: pages of 512 entries, found through a directory in
// chunks of 128 pages.
const (
	pageShift = 9
	pageIDs   = 1 << pageShift
	pageBytes = 8 * pageIDs

	blocksPerPage = pageBytes / blockBytes

	chunkPages    = 128
	pageRefBytes  = 16
	chunkBytes    = 8 + chunkPages*pageRefBytes
	maxNodeID     = 1<<32 - 1
	chunkSumBytes = 8
)

// pagesFor is the number of pages for ids below next.
func pagesFor(next uint64) uint64 { return (next + pageIDs - 1) >> pageShift }

func chunksFor(pages uint64) uint64 { return (pages + chunkPages - 1) / chunkPages }

// pageRef is a directory entry. Block 0 is a page without nodes.
type pageRef struct {
	block uint32 // of the file
	live  uint16 // ids in use
	place uint8
	sum   uint64 // of the page's bytes
}

func (r *pageRef) encode(b []byte) {
	binary.LittleEndian.PutUint32(b, r.block)
	binary.LittleEndian.PutUint16(b[4:], r.live)
	b[6], b[7] = r.place, 0
	binary.LittleEndian.PutUint64(b[8:], r.sum)
}

func decodePageRef(b []byte) pageRef {
	return pageRef{
		block: binary.LittleEndian.Uint32(b),
		live:  binary.LittleEndian.Uint16(b[4:]),
		place: b[6],
		sum:   binary.LittleEndian.Uint64(b[8:]),
	}
}

// check returns what is wrong with a directory entry.
func (r *pageRef) check(places *[placeCount]generation) string {
	if r.block == 0 {
		if *r != (pageRef{}) {
			return "empty page with content"
		}
		return ""
	}
	if r.place >= placeCount || !places[r.place].used() {
		return "page in no generation"
	}
	g := &places[r.place]
	if uint64(r.block) <= g.nodes || uint64(r.block)+blocksPerPage > g.size/blockBytes || r.live > pageIDs {
		return "page outside of its file"
	}
	return ""
}
