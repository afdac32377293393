package iacow

import (
	"cmp"
	"context"
	"slices"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
)

// Rules for letting older generations go.
const (
	// minShare is the part of a file, 1/minShare, that has to be live. Below it
	// the rest is written again, so that the file can go.
	minShare = 3
	// fullShare: when the changed nodes are 1/fullShare of all, the others are
	// written as well.
	fullShare = 2
)

// compact moves what is live in the generations that should go to the new file.
func (c *capture) compact(ctx context.Context) error {
	victims, any := c.victims()
	if !any {
		return nil
	}
	spare := new(shadow)
	for number := range uint32(c.base.pages) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.compactPage(number, &victims, spare); err != nil {
			return err
		}
	}
	return nil
}

// places is a set of generations.
type places [placeCount]bool

// victims chooses the generations that go: those with little that is live, and
// small ones if there are too many. All of them go when there is little left to
// be moved.
func (d *draft) victims() (v places, any bool) {
	full := uint64(d.places[d.own].live.nodes)*fullShare >= d.footer.nodes
	var stay []int
	for place := range d.places {
		g := &d.places[place]
		if !g.used() || place == int(d.own) || g.live.blocks() == 0 {
			continue
		}
		if v[place] = full || g.live.blocks()*minShare < g.size/blockBytes; v[place] {
			any = true
		} else {
			stay = append(stay, place)
		}
	}
	if len(stay) < MaxGenerations {
		return v, any
	}
	d.mergeSmall(&v, stay)
	return v, true
}

// mergeSmall chooses the smallest generation, and then as long as one is not
// larger than all before it together that one as well: the sizes of what is left
// are a geometric series, so that nodes do not move often. (Simulated with a
// hundredth of the nodes changed between two checkpoints: 3.5 % of the nodes are
// written on average, 1 % by most checkpoints; 13 % by each if only the smallest
// generation goes.)
func (d *draft) mergeSmall(v *places, stay []int) {
	size := func(place int) uint64 { return d.places[place].live.blocks() }
	slices.SortFunc(stay, func(a, b int) int { return cmp.Compare(size(a), size(b)) })
	sum := size(int(d.own))
	for i, place := range stay {
		if i > 0 && size(place) > sum {
			return
		}
		v[place] = true
		sum += size(place)
	}
}

// compactPage moves the nodes of a page that are in victims, and the page itself
// if it is.
func (c *capture) compactPage(number uint32, victims *places, spare *shadow) error {
	sh := c.shadows[number]
	if sh == nil {
		if err := c.readBase(number, spare); err != nil {
			return err
		}
		sh = spare
	}
	for i, e := range sh.words {
		if e == 0 || !victims[e.place()] {
			continue
		}
		if err := c.move(btree.NodeID(number<<pageShift|uint32(i)), e); err != nil {
			return err
		}
	}
	if sh.ref.block == 0 || !victims[sh.ref.place] {
		return nil
	}
	sh, err := c.shadow(number)
	if err == nil {
		c.change(sh)
	}
	return err
}

// move writes a node again that did not change since the last checkpoint.
func (c *capture) move(id btree.NodeID, e entry) (err error) {
	img, ok := c.appendCurrent(c.img[:0], id)
	if !ok {
		if img, err = c.base.appendNode(c.img[:0], id, e); err != nil {
			return err
		}
	}
	c.img = img
	return c.put(id, img)
}

// appendCurrent takes the image from memory, if the node is there and is what
// the last checkpoint has.
func (c *capture) appendCurrent(dst []byte, id btree.NodeID) ([]byte, bool) {
	s := c.x.store
	g, ok := s.page(uint32(id) >> pageShift)
	if !ok {
		return dst, false
	}
	e := entry(g.entry(int(id % pageIDs)).Load())
	if e == 0 || e.inFile() || !btree.CopyBlock(&c.node, s.block(arena.Ref(e))) {
		return dst, false
	}
	if h := btree.HeaderOf(c.node.Pointer()); h.ID != id || h.Epoch > s.published.Load() {
		return dst, false
	}
	return btree.AppendImage(dst, c.node.Pointer()), true
}
