package indirection

import (
	"cmp"
	"math/bits"
	"slices"
)

// Change is a new word for an ordinal.
type Change struct {
	Ordinal uint64
	Word    Word
	OnlyIf  Word // if not 0: the change is made only if this is the word before it
}

// SetBatch makes each change in turn, so of several for one ordinal without a
// condition the last one wins. It reorders changes. Page by page it needs half the time of single
// Sets in random order, because each page is brought in once and is at hand for
// all its changes; so batches should be large, best a whole replay. Calls may
// run at the same time for changes of different pages.
//
// After an error some of the changes have been made.
func (x *Array) SetBatch(shard uint32, changes []Change) error {
	sortByPage(changes)
	for len(changes) > 0 {
		n := samePage(changes)
		if err := x.setPage(shard, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// samePage counts the changes at the front that belong to one page.
func samePage(changes []Change) int {
	page := pageOf(changes[0].Ordinal)
	n := 1
	for n < len(changes) && pageOf(changes[n].Ordinal) == page {
		n++
	}
	return n
}

// setPage makes changes of one page.
func (x *Array) setPage(shard uint32, changes []Change) error {
	page, err := x.writablePage(shard, changes[0].Ordinal)
	if err != nil {
		return err
	}
	for _, c := range changes {
		slot := x.slot(page, c.Ordinal)
		if c.OnlyIf != 0 && slot.Load() != uint64(c.OnlyIf) {
			continue
		}
		if c.Word != 0 {
			x.raise(c.Ordinal)
		}
		slot.Store(uint64(c.Word))
	}
	return nil
}

const (
	radixBits = 11
	// Below this many changes clearing and adding up the counts costs more than
	// comparing.
	radixLeast = 512
)

// sortByPage sorts by page and keeps the order within a page.
func sortByPage(changes []Change) {
	byPage := func(a, b Change) int { return cmp.Compare(pageOf(a.Ordinal), pageOf(b.Ordinal)) }
	if len(changes) < radixLeast {
		slices.SortStableFunc(changes, byPage)
		return
	}
	low, high := pageOf(changes[0].Ordinal), pageOf(changes[0].Ordinal)
	for _, c := range changes {
		low, high = min(low, pageOf(c.Ordinal)), max(high, pageOf(c.Ordinal))
	}
	from, to := changes, make([]Change, len(changes))
	for shift := 0; shift < bits.Len64(high-low); shift += radixBits {
		scatter(from, to, low, shift)
		from, to = to, from
	}
	if &from[0] != &changes[0] {
		copy(changes, from)
	}
}

// scatter distributes by one digit of the page, stably.
func scatter(from, to []Change, low uint64, shift int) {
	var starts [1<<radixBits + 1]int
	digit := func(c Change) uint64 { return (pageOf(c.Ordinal) - low) >> shift & (1<<radixBits - 1) }
	for _, c := range from {
		starts[digit(c)+1]++
	}
	for i := range starts[1:] {
		starts[i+1] += starts[i]
	}
	for _, c := range from {
		d := digit(c)
		to[starts[d]] = c
		starts[d]++
	}
}
