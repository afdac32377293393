package chainindex

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/rowid"
)

// The trees of a chain keep a row as its ordinal and, in the lowest bit, whether
// the entry is a tombstone. The table is that of the index. So an entry and its
// tombstone are neighbours in the order of entries, the entry first.
const tombstone = 1

// livePlace is the row of an entry in a tree of the chain.
func livePlace(ordinal uint64) rowid.ID { return rowid.ID(ordinal << 1) }

// deadPlace is the row of the entry's tombstone.
func deadPlace(ordinal uint64) rowid.ID { return rowid.ID(ordinal<<1 | tombstone) }

func placeOrdinal(p rowid.ID) uint64 { return uint64(p) >> 1 }

func isTombstone(p rowid.ID) bool { return p&tombstone != 0 }

// checkRow watches over the rows that an index is given.
func checkRow(spec *index.Spec, row rowid.ID) {
	if invariants.Enabled && (row.Table() != spec.Table || row.Ordinal() == 0) {
		invariants.Fail("index %s of table %d is given row %v", spec.Name, spec.Table, row)
	}
}

// A lookup in several trees tags each place with the age of its tree, so that
// sorting brings the places of one row together, the newest first.
const (
	ageBits  = 7
	maxAge   = 1<<ageBits - 1
	tagShift = ageBits + 1
)

// tag turns places found in a tree into tagged ones.
func tag(places []rowid.ID, age int) {
	for i, p := range places {
		places[i] = rowid.ID(placeOrdinal(p)<<tagShift | uint64(age)<<1 | uint64(p&tombstone))
	}
}

func tagOrdinal(t rowid.ID) uint64 { return uint64(t) >> tagShift }
