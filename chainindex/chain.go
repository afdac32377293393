package chainindex

import (
	"slices"

	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Hard caps on the length of a chain: every lookup looks into every layer.
const (
	maxFiles  = 5 // layers in files
	maxFrozen = 3 // frozen layers in memory: of a checkpoint, of an abandoned one, of a snapshot
	maxLayers = 1 + maxFrozen + maxFiles
)

// chain is a list of layers. It is never changed, only replaced by another.
type chain struct {
	layers []*layer // newest first; the first one is the head
	memory int      // how many of them are in memory; files follow
}

func (c *chain) head() *layer     { return c.layers[0] }
func (c *chain) frozen() []*layer { return c.layers[1:c.memory] }
func (c *chain) files() []*layer  { return c.layers[c.memory:] }

// withHead returns the chain with a new head.
func (c *chain) withHead(head *layer) *chain {
	return &chain{slices.Insert(slices.Clone(c.layers), 0, head), c.memory + 1}
}

// sameFiles reports whether what was looked up in the files of old holds for
// c. Layers in memory are looked at under the latch.
func (c *chain) sameFiles(old *chain) bool {
	return c == old || slices.Equal(c.files(), old.files())
}

// age of layer i orders what is found: newer is less. It stays the same when
// layers are added in front.
func (c *chain) age(i int) int { return maxAge - (len(c.layers) - i) }

// collect appends the tagged places of a key in the layers [from, to).
func (c *chain) collect(h *epoch.Handle, key []byte, dst []rowid.ID, from, to int) ([]rowid.ID, error) {
	for i := from; i < to; i++ {
		start := len(dst)
		var err error
		if dst, err = c.layers[i].lookup(h, key, dst); err != nil {
			return dst, err
		}
		tag(dst[start:], c.age(i))
	}
	return dst, nil
}

// settle reduces tagged places, in any order, to the rows that are present: of
// each row the newest layer decides, and in one layer the entry over its
// tombstone. It works in place.
func settle(places []rowid.ID, table rowid.Table) []rowid.ID {
	if !slices.IsSorted(places) {
		slices.Sort(places)
	}
	rows := places[:0]
	last := uint64(0) // no row has it
	for _, t := range places {
		ordinal := tagOrdinal(t)
		if ordinal == last {
			continue
		}
		last = ordinal
		if !isTombstone(t) {
			rows = append(rows, rowid.Make(table, ordinal))
		}
	}
	return rows
}
